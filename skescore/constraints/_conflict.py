"""Contradictions between constraints, proven and reduced to a minimal subset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from skescore._text import plural
from skescore.constraints._arrangements import Arrangement, arrangements
from skescore.constraints._cells import CellSpace
from skescore.constraints._constraints import Constraints
from skescore.constraints._labeled_rows import LabeledRows
from skescore.constraints._monotone import DecisionRegions, check_ordered
from skescore.constraints._parts import split
from skescore.constraints._pinned import PinnedRule
from skescore.constraints._precise_box import BoxProblem, PreciseBoxSearch, SearchLimitError
from skescore.constraints._regions import Clause, RegionSearch, outside
from skescore.constraints._violations import _CHECKS, GroupGap, _Context, gap_classes
from skescore.metrics import group_masks, labels_of_rules
from skescore.rules import LinearOutput, Rule, RuleSet, convert_rows


@dataclass(frozen=True)
class Conflict:
    """Minimal set of contradictory constraints: no proper subset is proven to be contradictory.

    Parameters
    ----------
    labels : tuple of str
        Labels of the constraints, see :meth:`Constraints.parts`.
    reason : str
        Explanation of the contradiction.
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
    """Find a minimal set of constraints that contradict each other.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    ruleset : RuleSet
        A rule set with the feature names, classes and domain in question; it may be empty:
        ``RuleSet([], names, task=..., classes=...)``.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows, for constraints on support, precision and gaps.
    y : array-like of shape (n_rows,), optional
        Labels of the rows.

    Returns
    -------
    Conflict or None
        Minimal subset that is proven to be contradictory; None if no contradiction is proven.

    Raises
    ------
    ValueError
        If a constraint names an unknown feature or class, or a monotone feature has no order.

    Notes
    -----
    Contradictions are proven by necessary conditions, such as the number of rules for which there
    are enough rows, and by the exact comparison of pinned rules along monotone features. The subset
    is minimized by dropping constraints one by one as long as the rest is contradictory.

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
        row_labels: Any = np.zeros(len(X)) if y is None else labels_of_rules(ruleset, "y", y)
        rows = LabeledRows(X, row_labels, ruleset)
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
    """Proofs that constraints contradict each other, because a necessary condition is violated."""

    def __init__(self, ruleset: RuleSet, rows: LabeledRows | None, *, has_labels: bool) -> None:
        self.ruleset = ruleset
        self.names = list(ruleset.feature_names)
        self.rows = rows
        self.has_labels = has_labels

    def reason(self, constraints: Constraints) -> str | None:
        """Return why constraints contradict each other; None if no proof succeeds."""
        proofs = (
            self._check_features,
            self._check_pinned_rules,
            self._check_positions,
            self._check_sizes,
            self._check_support,
            self._check_precision,
            self._check_arrangements,
        )
        return next((text for proof in proofs for text in proof(constraints)), None)

    def _check_features(self, constraints: Constraints) -> Iterator[str]:
        for feature in constraints.required:
            if feature in constraints.forbidden:
                yield f"{feature!r} is forbidden and required"
        pinned = [f for p in constraints.pinned for f in p.feature_names]
        needed = list(dict.fromkeys([*constraints.required, *pinned]))
        if not constraints.affords(needed):
            total = sum(constraints.feature_costs.get(f, 0.0) for f in needed)
            yield f"the needed features cost {total:g}"
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

    def _check_pinned_rules(self, constraints: Constraints) -> Iterator[str]:
        """Check single pinned rules, without the number of rows and their order."""
        for pinned in constraints.pinned:
            rule = pinned.in_table(self.names)
            alone = self.ruleset.replace(rules=[rule], fallback=None, voting=None, ordered=True)
            context = _Context(alone, constraints, None, None, check_rows=False)
            for evidence in _evidence(context, constraints):
                yield evidence.replace("rule 1", f"the pinned rule {pinned}")

    def _check_positions(self, constraints: Constraints) -> Iterator[str]:
        positioned = [p for p in constraints.pinned if p.position is not None]
        for one, other in combinations(positioned, 2):
            if one.position == other.position and not self._are_equal(one, other):
                yield f"two pinned rules have position {(one.position or 0) + 1}"
        last = max((p.position or 0 for p in positioned), default=-1) + 1
        largest, text = self.largest_number(constraints)
        n_pinned = len({self._key(p) for p in constraints.pinned})
        if last > largest:
            yield f"a pinned rule has position {last}, but the limit is {text}"
        elif n_pinned > largest:
            yield f"{plural(n_pinned, 'rule')} are pinned, but the limit is {text}"

    def _key(self, pinned: PinnedRule) -> Any:
        rule = pinned.in_table(self.names)
        return frozenset(rule.conditions), rule.output

    def _are_equal(self, one: PinnedRule, other: PinnedRule) -> bool:
        return bool(self._key(one) == self._key(other))

    def largest_number(self, constraints: Constraints) -> tuple[float, str]:
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

    def _check_sizes(self, constraints: Constraints) -> Iterator[str]:
        largest, text = self.largest_number(constraints)
        if largest < 1 and constraints.min_support is None:
            yield f"the limit is {text}"
        limits = constraints.max_rules_per_class
        for output in dict.fromkeys(p.rule.output for p in constraints.pinned):
            keys = {self._key(p) for p in constraints.pinned if p.rule.output == output}
            limit = limits.get(str(output)) if isinstance(limits, Mapping) else limits
            if limit is not None and len(keys) > limit:
                yield f"{plural(len(keys), 'pinned rule')} conclude {output}"
        pinned = {f for p in constraints.pinned for f in p.feature_names}
        missing = [f for f in constraints.required if f not in pinned]
        n_free = largest - len({self._key(p) for p in constraints.pinned})
        slots = n_free * self._most_conditions(constraints) if n_free > 0 else 0
        if self.ruleset.classes is None and n_free > 0:
            return  # linear outputs use features without conditions
        if missing and n_free <= 0:
            listed = " and ".join(map(repr, missing))
            yield f"pinned rules fill the limit of {text} and do not use the required {listed}"
        elif len(missing) > slots:
            needs = "feature needs" if len(missing) == 1 else "features need"
            yield (
                f"{len(missing)} required {needs} more conditions than {text} "
                f"{'is' if largest == 1 else 'are'} allowed to have"
            )

    def _most_conditions(self, constraints: Constraints) -> float:
        limit = constraints.max_conditions
        if isinstance(limit, Mapping):
            labels = [str(label) for label in self.ruleset.classes or ()]
            return max((limit.get(label, math.inf) for label in labels), default=math.inf)
        return math.inf if limit is None else limit

    def _check_support(self, constraints: Constraints) -> Iterator[str]:
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

    def _check_precision(self, constraints: Constraints) -> Iterator[str]:
        """Check by an exact search that precise rules exist besides the pinned rules."""
        if constraints.min_precision is None or self.rows is None or not self.has_labels:
            return
        if self.rows.classes is None:
            return
        search = PreciseBoxSearch(self.rows, constraints)
        fixed = [p.in_table(self.names) for p in constraints.pinned]
        pinned_features = {f for p in constraints.pinned for f in p.feature_names}
        needed = [self.names.index(f) for f in constraints.required if f not in pinned_features]
        if fixed and not needed:
            return
        if any(p.position is not None for p in constraints.pinned):
            fixed = []  # rules before them may decide any row
        remaining = self.rows.assign(fixed) < 0 if fixed else self.rows.overall
        sets = (
            [tuple(needed)]
            if self.largest_number(constraints)[0] < len(fixed) + 2
            else [(feature,) for feature in needed]
        )
        for features in sets or [()]:
            if not self.has_precise_rule(search, constraints, remaining, features):
                listed = " and ".join(self.names[f] for f in features)
                using = f" using {listed}" if features else ""
                yield f"no conjunction of conditions{using} is that precise for that many rows"

    def has_precise_rule(
        self,
        search: PreciseBoxSearch,
        constraints: Constraints,
        remaining: np.ndarray,
        features: tuple[int, ...],
        smallest: int = 1,
    ) -> bool:
        """Return whether a precise rule exists, or may exist if the search was stopped."""
        assert self.rows is not None
        for label in self.rows.classes or ():
            if class_limit(constraints.max_rules_per_class, label) == 0:
                continue
            limit = class_limit(constraints.max_conditions, label)
            try:
                problem = BoxProblem(label, remaining, features, limit, smallest)
                if search.find(problem) is not None:
                    return True
            except SearchLimitError:
                return True
        return False

    # --- arrangements of pinned rules -------------------------------------------------------------

    def _check_arrangements(self, constraints: Constraints) -> Iterator[str]:
        """Check whether all arrangements of pinned rules are impossible."""
        pinned = list({self._key(p): p for p in constraints.pinned}.values())
        if not pinned or len(pinned) < len(constraints.pinned):
            return
        if len({p.position for p in pinned if p.position is not None}) < sum(
            p.position is not None for p in pinned
        ):
            return
        first_reason = None
        for arrangement in arrangements(pinned) or ():
            reason = _ArrangementCheck(self, arrangement, constraints).reason()
            if reason is None:
                return
            first_reason = first_reason or reason
        if first_reason is not None:
            yield first_reason


class _ArrangementCheck:
    """Checks of necessary conditions of one arrangement of pinned rules.

    Other rules may not decide rows of a later pinned rule that has no position.
    """

    def __init__(self, prover: _Prover, arrangement: Arrangement, constraints: Constraints) -> None:
        self.prover = prover
        self.rows = prover.rows
        self.constraints = constraints
        self.slots = arrangement
        names = prover.names
        self.rules = [None if p is None else p.in_table(names) for p in arrangement]
        self.pinned = [i for i, p in enumerate(arrangement) if p is not None]
        self.independent = [i for i in self.pinned if self._is_independent(i)]

    def _is_independent(self, index: int) -> bool:
        """Return whether the rows of a pinned rule do not depend on rules that are not pinned."""
        pinned = self.slots[index]
        assert pinned is not None
        return pinned.position is None or None not in self.slots[:index]

    def _rule(self, index: int) -> Rule:
        rule = self.rules[index]
        assert rule is not None
        return rule

    def reason(self) -> str | None:
        """Return why the arrangement is impossible; None if that is not proven."""
        checks = (
            self._check_number,
            self._check_reachability,
            self._check_support,
            self._check_precision,
            self._check_monotonicity,
            self._check_gap,
        )
        return next((text for check in checks for text in check()), None)

    def _check_number(self) -> Iterator[str]:
        largest, text = self.prover.largest_number(self.constraints)
        if len(self.slots) > largest:
            yield f"{plural(len(self.slots), 'rule')} are needed, but there are at most {text}"

    def _check_reachability(self) -> Iterator[str]:
        ruleset = self.prover.ruleset
        for i in self.pinned:
            pinned = self.slots[i]
            assert pinned is not None
            if pinned.position is None:
                continue
            rules = [self._rule(k) for k in self.pinned if k <= i]
            pinned_rules = ruleset.replace(rules=rules, fallback=None, voting=None, ordered=True)
            if len(rules) - 1 not in DecisionRegions(pinned_rules).deciders:
                yield f"earlier pinned rules decide all rows of the pinned rule {pinned}"

    def _open_rows(self, index: int) -> np.ndarray:
        """Return the rows of a pinned rule that no earlier pinned rule satisfies."""
        assert self.rows is not None
        mask = self.rows.mask(self._rule(index).conditions).copy()
        for i in self.pinned:
            if i < index:
                mask &= ~self.rows.mask(self._rule(i).conditions)
        return mask

    def _reserved_rows(self, index: int) -> np.ndarray:
        """Return the rows that rules before `index` may not decide unless they are pinned."""
        assert self.rows is not None
        mask = np.zeros(len(self.rows), dtype=bool)
        for i in self.pinned:
            pinned = self.slots[i]
            if i > index and pinned is not None and pinned.position is None:
                mask |= self.rows.mask(self._rule(i).conditions)
        return mask

    def _check_support(self) -> Iterator[str]:
        if self.rows is None:
            return
        smallest = self.constraints.smallest_support(len(self.rows))
        smallest = max(smallest, self.constraints.min_precision is not None)
        for i in self.pinned:
            n_rows = int(self._open_rows(i).sum())
            if n_rows < smallest:
                rows = plural(n_rows, "row")
                yield f"the pinned rule {self.slots[i]} decides only {rows}"
        for i in range(len(self.slots)):
            if self.slots[i] is None and smallest:
                earlier = [self._rule(k) for k in self.pinned if k < i and k in self.independent]
                open_rows = (self.rows.assign(earlier) < 0) & ~self._reserved_rows(i)
                if int(open_rows.sum()) < smallest:
                    yield f"the pinned rules leave too few rows for rule {i + 1}"

    def _check_precision(self) -> Iterator[str]:
        precision = self.constraints.min_precision
        if not precision or self.rows is None or not self.prover.has_labels:
            return
        if self.rows.classes is None:
            return
        for i in self.pinned:
            rule, mask = self._rule(i), self._open_rows(i)
            is_label = self.rows.codes == self.rows.classes.index(rule.output)
            decided_mask = mask if i in self.independent else mask & self._reserved_rows(i)
            n_label = int((mask & is_label).sum())
            n_other = int((decided_mask & ~is_label).sum())
            if n_label + n_other and n_label / (n_label + n_other) < precision:
                yield f"too few of the rows of the pinned rule {self.slots[i]} have its class"
            elif i not in self.independent and not self._can_become_precise(i, mask, is_label):
                yield f"no earlier rules can make the pinned rule {self.slots[i]} precise enough"

    def _can_become_precise(self, index: int, mask: np.ndarray, is_label: np.ndarray) -> bool:
        """Return whether precise rules before a pinned rule may decide enough of its wrong rows."""
        assert self.rows is not None
        precision = self.constraints.min_precision or 0.0
        n_label, n_other = int((mask & is_label).sum()), int((mask & ~is_label).sum())
        n_tolerated = math.floor(n_label * (1 / precision - 1) + 1e-9)
        n_before = sum(slot is None for slot in self.slots[:index])
        smallest = math.ceil((n_other - n_tolerated) / n_before)
        if smallest <= 0:
            return True
        search = PreciseBoxSearch(self.rows, self.constraints)
        open_rows = ~self._reserved_rows(index)
        return self.prover.has_precise_rule(search, self.constraints, open_rows, (), smallest)

    def _check_monotonicity(self) -> Iterator[str]:
        """Compare the rows of pinned rules along all monotone features together."""
        if not self.constraints.monotone:
            return
        names, ruleset = self.prover.names, self.prover.ruleset
        rank = _ranks(self.constraints, ruleset)
        monotone = {names.index(f): d for f, d in self.constraints.monotone.items()}
        rules = [self._rule(i) for i in self.pinned]
        space = CellSpace.of_rules(rules, ruleset.domain, monotone)
        boxes = [space.boxes(rule.conditions) for rule in rules]
        for a, i in enumerate(self.pinned):
            for b, j in enumerate(self.pinned):
                low, high = rank(rules[a].output), rank(rules[b].output)
                is_ordered = low is None or high is None or low <= high
                if a == b or is_ordered or not {i, j} <= set(self.independent):
                    continue
                if _precedes(space, boxes, a, b, monotone):
                    yield (
                        f"the pinned rule {self.slots[i]} must not predict more than the pinned "
                        f"rule {self.slots[j]}, but does"
                    )

    def _check_gap(self) -> Iterator[str]:
        if self.rows is None:
            return
        decided = np.zeros(len(self.rows), dtype=bool)
        outputs = np.full(len(self.rows), None, dtype=object)
        for i in self.independent:
            mask = self._open_rows(i)
            decided |= mask
            outputs[mask] = self._rule(i).output
        for column, limit in self.constraints.max_gap.items():
            groups = group_masks(self.rows.X, self.prover.names, column)
            if _fixed_gap(outputs, decided, list(groups.values()), self).exceeds(limit):
                yield f"the pinned rules alone cause too large a gap between groups of {column}"


def _evidence(context: _Context, constraints: Constraints) -> Iterator[str]:
    """Yield the evidence that a single rule violates constraints on its conditions."""
    for label, part in split(constraints).items():
        for name in ("forbidden", "thresholds", "together", "apart", "max_conditions"):
            if getattr(part, name):
                yield from (v.evidence for v in _CHECKS[name](context, label, part))


def _fixed_gap(
    outputs: np.ndarray, decided: np.ndarray, groups: list[np.ndarray], check: _ArrangementCheck
) -> GroupGap:
    """Return a lower bound on the gap between groups for any predictions of other rules."""
    classes = check.prover.ruleset.classes
    if classes is None:
        decided_groups = [m for m in groups if decided[m].all()]
        if any(isinstance(v, LinearOutput) for v in outputs[decided].tolist()):
            return GroupGap(0.0, 0.0)
        means = [float(np.mean(outputs[m].astype(float))) for m in decided_groups] or [0.0]
        return GroupGap(min(means), max(means))
    largest = GroupGap(0.0, 0.0)
    for label in gap_classes(classes, check.constraints):
        is_label = decided & (outputs == label)
        lowest = [float(is_label[m].mean()) for m in groups]
        highest = [float((is_label | ~decided)[m].mean()) for m in groups]
        gap = GroupGap(min(highest, default=0.0), max(lowest, default=0.0))
        largest = max(largest, gap, key=lambda one: one.size)
    return largest


def class_limit(limit: Any, label: Any) -> float:
    """Return the limit for a class; infinity if there is none."""
    if isinstance(limit, Mapping):
        return float(limit.get(str(label), math.inf))
    return math.inf if limit is None else float(limit)


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
