"""Minimal rule lists: pinned rules, required features, and an otherwise constant prediction.

They show that constraints can be satisfied together if the repair of better rules fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skescore.constraints._arrangements import Arrangement, arrangements
from skescore.constraints._cells import CellSpace
from skescore.constraints._constraints import Constraints
from skescore.constraints._labeled_rows import LabeledRows
from skescore.constraints._pinned import rule_features
from skescore.constraints._precise_box import BoxProblem, PreciseBoxSearch, SearchLimitError
from skescore.constraints._rewriting import trivial_condition
from skescore.metrics import group_masks
from skescore.rules import (
    Condition,
    Fallback,
    Interval,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    with_statistics,
)

#: Maximum number of lists with one further rule that changes the gap between groups.
_MAX_BALANCING_RULES = 80


def minimal_lists(
    source: RuleSet, constraints: Constraints, rows: LabeledRows
) -> Iterator[RuleSet]:
    """Yield simple lists; constraints without contradictions often accept one of them.

    Parameters
    ----------
    source : RuleSet
        Rules whose names, classes and domain apply.
    constraints : Constraints
        The constraints.
    rows : LabeledRows
        The rows.

    Yields
    ------
    RuleSet
        Ordered lists with the statistics of the rows.
    """
    builder = _Builder(source, constraints, rows)
    examined: set[tuple[Any, ...]] = set()
    for rules, fallback in builder.candidates():
        key = (*rules, fallback)
        if rules and key not in examined:
            examined.add(key)
            yield builder.ruleset(rules, fallback)


class _Builder:
    """Parts of minimal lists."""

    def __init__(self, source: RuleSet, constraints: Constraints, rows: LabeledRows) -> None:
        self.source = source
        self.constraints = constraints
        self.rows = rows
        self.names = list(source.feature_names)
        self.pinned = [p.in_table(self.names) for p in constraints.pinned]
        used = set().union(*map(rule_features, self.pinned)) if self.pinned else set()
        required = [self.names.index(f) for f in constraints.required]
        self.required = [f for f in required if f not in used]
        self.search = PreciseBoxSearch(rows, constraints)
        first = [f for f in self.search.usable if f in used or f in required]
        self.usable = [*first, *(f for f in self.search.usable if f not in first)]
        self.smallest = constraints.smallest_support(len(rows))

    def ruleset(self, rules: Sequence[Rule], fallback: Any) -> RuleSet:
        """Return a list with a fallback and the statistics of the rows."""
        plain = self.source.replace(
            rules=rules, ordered=True, disjoint=False, voting=None, fallback=Fallback(fallback)
        )
        return with_statistics(plain, self.rows.X, self.rows.labels)

    def candidates(self) -> Iterator[tuple[list[Rule], Any]]:
        """Yield lists of rules with the output of the fallback, the simplest ones first."""
        orders = arrangements(self.constraints.pinned) or [tuple(self.constraints.pinned)]
        balanced: list[tuple[list[Rule], Any]] = []
        for arrangement in orders:
            fixed_rules = [p.in_table(self.names) for p in arrangement if p is not None]
            for fallback in self.outputs(fixed_rules):
                for front in self._fill_arrangement(arrangement, fallback):
                    for rules in self._complete_lists(front, fallback):
                        yield rules, fallback
                        balanced.append((rules, fallback))
        if self.constraints.max_gap:
            for rules, fallback in balanced[:6]:
                yield from self._balanced_lists(rules, fallback)

    def outputs(self, fixed_rules: Sequence[Rule] = ()) -> list[Any]:
        """Return outputs of the fallback: the most frequent classes first, or numbers."""
        if self.rows.classes is not None:
            counts = self.rows.counts(self.rows.overall)
            order = np.argsort(-counts, kind="stable").tolist()
            return [self.rows.classes[i] for i in order]
        fixed = [float(r.output) for r in self.pinned if isinstance(r.output, int | float)]
        mean = self.rows.best_output(self.rows.overall, 0.0)
        return list(dict.fromkeys([mean, *fixed, *self._balancing_outputs(fixed_rules)]))

    def _balancing_outputs(self, fixed_rules: Sequence[Rule]) -> list[float]:
        """Return outputs of uncovered rows for which two groups have equal means."""
        decided, fixed = self._fixed_outputs(fixed_rules)
        balancing: list[float] = []
        for column in self.constraints.max_gap:
            groups = list(group_masks(self.rows.X, self.names, column).values())
            sums = [(float(fixed[m].mean()), float((decided[m] < 0).mean())) for m in groups]
            for i, (a, b) in enumerate(sums):
                balancing += [(c - a) / (b - d) for c, d in sums[:i] if b != d]
        return balancing

    # --- rules in front of and between pinned ones ------------------------------------------------

    def _fill_arrangement(self, arrangement: Arrangement, output: Any) -> Iterator[list[Rule]]:
        """Yield the pinned rules with rules in the open slots between them."""
        slots = [None if p is None else p.in_table(self.names) for p in arrangement]
        if None not in slots:
            yield [rule for rule in slots if rule is not None]
            return
        labels = self.outputs() if self.rows.classes is not None else [output]
        for label in dict.fromkeys([output, *labels]):
            for smallest_first in (True, False):
                rules = self._fill_slots(arrangement, slots, label, smallest_first)
                if rules is not None:
                    yield rules

    def _fill_slots(
        self,
        arrangement: Arrangement,
        slots: Sequence[Rule | None],
        label: Any,
        smallest_first: bool,
    ) -> list[Rule] | None:
        rules: list[Rule] = []
        pending = list(self.required)
        for i, slot in enumerate(slots):
            if slot is not None:
                rules.append(slot)
                continue
            later = [
                rule
                for rule, pinned in zip(slots[i + 1 :], arrangement[i + 1 :], strict=True)
                if rule is not None and pinned is not None and pinned.position is None
            ]
            rule = self._rule_for_slot(rules, later, label, pending, smallest_first)
            if rule is None:
                return None
            pending = [f for f in pending if f not in rule_features(rule)]
            rules.append(rule)
        return rules

    def _rule_for_slot(
        self,
        before: list[Rule],
        later: list[Rule],
        label: Any,
        pending: list[int],
        smallest_first: bool,
    ) -> Rule | None:
        """Return a rule that decides no row of later pinned rules without position, or None."""
        open_rows = self.rows.assign(before) < 0
        conditions = [
            opposite
            for rule in (*later, *self.pinned)
            for condition in rule.conditions
            for opposite in _opposites(condition)
        ]
        for feature in (*pending, *self._affordable()):
            conditions += self.rows.cuts(feature, self.constraints)
        premises = [[condition] for condition in dict.fromkeys(conditions)]
        premises += self._earlier_premises(before, open_rows, label)
        options: list[tuple[bool, int, int, Rule]] = []
        for premise in premises:
            rule = Rule(tuple(premise), label)
            mask = self.rows.mask(rule.conditions) & open_rows
            size = int(mask.sum())
            if size < self.smallest or not self._is_precise(mask, label):
                continue
            if any(self._overlap(rule, one) for one in later):
                continue
            if self._leaves_too_few_rows(mask, open_rows):
                continue
            is_pending = bool(pending) and not rule_features(rule) & set(pending)
            options.append((is_pending, size if smallest_first else -size, len(options), rule))
        return min(options)[-1] if options else None

    def _leaves_too_few_rows(self, mask: np.ndarray, open_rows: np.ndarray) -> bool:
        """Return whether a rule with these rows leaves too few rows for a pinned rule."""
        masks = [self.rows.mask(rule.conditions) & open_rows for rule in self.pinned]
        return any(
            int((one & ~mask).sum()) < max(1, self.smallest) <= int(one.sum()) for one in masks
        )

    def _earlier_premises(
        self, before: list[Rule], open_rows: np.ndarray, label: Any
    ) -> Iterator[list[Condition]]:
        """Yield precise premises that decide the rows that make a later pinned rule imprecise."""
        precision = self.constraints.min_precision
        if precision is None or self.rows.classes is None:
            return
        for rule in self.pinned:
            mask = self.rows.mask(rule.conditions) & open_rows
            n_label = int(self.rows.counts(mask)[self.rows.classes.index(rule.output)])
            smallest = int(mask.sum()) - n_label - math.floor(n_label * (1 / precision - 1) + 1e-9)
            if rule in before or smallest <= 0:
                continue
            problem = BoxProblem(label, mask, (), self._condition_limit(label), smallest)
            try:
                earlier_rule = self.search.find(problem)
            except SearchLimitError:
                continue
            if earlier_rule is not None:
                yield list(earlier_rule.conditions)

    def _overlap(self, one: Rule, other: Rule) -> bool:
        space = CellSpace.of_rules([one, other], self.source.domain or self.rows.domain)
        return bool(space.boxes([*one.conditions, *other.conditions]))

    # --- rules behind pinned ones -----------------------------------------------------------------

    def _complete_lists(self, front: list[Rule], output: Any) -> Iterator[list[Rule]]:
        """Yield lists that use all required features and have at least one rule."""
        for monotone_rules in self._upper_and_lower_sets(output):
            start = [*front, *monotone_rules]
            used = set().union(*map(rule_features, start)) if start else set()
            pending = [f for f in self.required if f not in used]
            open_rows = self.rows.assign(start) < 0
            if not pending:
                yield [*start] if start else [Rule((), output)]
            for n_rules in (0, 2, 3) if pending else ():
                required_rules = self._required_rules(pending, open_rows, output, n_rules)
                if required_rules is not None:
                    yield [*start, *required_rules]
            yield from self._precise_lists(start, open_rows, pending)

    def _precise_lists(
        self, start: list[Rule], open_rows: np.ndarray, pending: list[int]
    ) -> Iterator[list[Rule]]:
        """Yield lists with a precise rule that uses all required features, or one for each."""
        if self.constraints.min_precision is None or self.rows.classes is None:
            return
        if start and not pending:
            return
        for label in self.outputs():
            rule = self._precise_rule(label, open_rows, tuple(pending))
            if rule is not None:
                yield [*start, rule]
        rules, remaining = list(start), open_rows
        for feature in pending:
            options = [self._precise_rule(c, remaining, (feature,)) for c in self.outputs()]
            precise_rule = next((rule for rule in options if rule is not None), None)
            if precise_rule is None:
                return
            rules.append(precise_rule)
            remaining = remaining & ~self.rows.mask(precise_rule.conditions)
        if len(pending) > 1:
            yield rules

    def _precise_rule(
        self, label: Any, open_rows: np.ndarray, needed: tuple[int, ...]
    ) -> Rule | None:
        limit = self._condition_limit(label)
        try:
            return self.search.find(BoxProblem(label, open_rows, needed, limit))
        except SearchLimitError:
            return None

    def _affordable(self) -> list[int]:
        """Return features that rules may use together, the needed ones first."""
        features: list[int] = []
        for feature in self.usable:
            if self.search.is_affordable([*features, feature]):
                features.append(feature)
        return features

    def _condition_limit(self, output: Any) -> int:
        limit = self.constraints.max_conditions
        if isinstance(limit, Mapping):
            limit = limit.get(str(output))
        return 99 if limit is None else int(limit)

    def _upper_and_lower_sets(self, output: Any) -> Iterator[list[Rule]]:
        """Yield no rules, then rules for the rows above or below pinned rules, with their outputs.

        If pinned rules respect monotonicity, the list of their upper sets by decreasing output is
        monotone with the lowest output elsewhere; so is the list of lower sets.
        """
        yield []
        if not self.constraints.monotone or not self.pinned:
            return
        ranks = [self._rank(rule.output) for rule in self.pinned]
        if None in ranks:
            return
        for sign in (1, -1):
            ranked_rules = [
                (sign * rank, rule)
                for rank, rule in zip(ranks, self.pinned, strict=True)
                if sign * (rank - self._rank(output)) > 0
            ]
            ranked_rules.sort(key=lambda pair: -pair[0])
            rules = [self._without_bounds(rule, sign) for _, rule in ranked_rules]
            if rules:
                yield list(dict.fromkeys(rules))

    def _rank(self, output: Any) -> Any:
        classes = self.constraints.ranked_classes(self.source)
        if classes is not None:
            return classes.index(output)
        return float(output) if isinstance(output, int | float) else None

    def _without_bounds(self, rule: Rule, sign: int) -> Rule:
        """Return a rule without bounds in the direction of increasing (or decreasing) outputs."""
        conditions: list[Condition] = []
        for condition in rule.conditions:
            direction = self.constraints.monotone.get(self.names[condition.features[0]])
            if direction is None or not isinstance(condition, Interval):
                conditions.append(condition)
            elif (direction == "+") == (sign > 0):
                conditions.append(replace(condition, upper=math.inf))
            else:
                conditions.append(replace(condition, lower=-math.inf))
        return Rule(tuple(conditions), rule.output)

    def _required_rules(
        self, pending: list[int], open_rows: np.ndarray, output: Any, n_rules: int
    ) -> list[Rule] | None:
        """Return rules that use all required features; None if they would be too weak."""
        n_chunks = max(n_rules, math.ceil(len(pending) / self._condition_limit(output)))
        if n_chunks > len(pending):
            return None
        chunks = [pending[i::n_chunks] for i in range(n_chunks)]
        rules: list[Rule] = []
        for i, chunk in enumerate(chunks):
            n_reserved = self.smallest * (len(chunks) - i - 1)
            rule = self._rule_with(chunk, open_rows, output, n_reserved)
            if rule is None:
                return None
            rules.append(rule)
            open_rows = open_rows & ~self.rows.mask(rule.conditions)
        return rules

    def _rule_with(
        self, chunk: list[int], open_rows: np.ndarray, output: Any, n_reserved: int
    ) -> Rule | None:
        """Return a rule on some features that leaves enough rows for the next rules, or None."""
        trivial = {feature: self._trivial(feature) for feature in chunk}
        options: list[tuple[int, int, Rule]] = []
        for feature in chunk:
            others = [trivial[f] for f in chunk if f != feature]
            for condition in (trivial[feature], *self.rows.cuts(feature, self.constraints)):
                rule = Rule((condition, *others), output)
                mask = self.rows.mask(rule.conditions) & open_rows
                size = int(mask.sum())
                is_weak = size < self.smallest or int(open_rows.sum()) - size < n_reserved
                if not is_weak and self._is_precise(mask, output):
                    options.append((size, len(options), rule))
        return min(options)[-1] if options else None

    def _trivial(self, feature: int) -> Condition:
        allowed = self.constraints.allowed_thresholds(self.names[feature])
        options = trivial_condition(feature, allowed, self.rows.domain)
        return max(options, key=lambda c: int(self.rows.mask([c]).sum()))

    def _is_precise(self, mask: np.ndarray, output: Any) -> bool:
        precision = self.constraints.min_precision
        if precision is None or self.rows.classes is None:
            return True
        if not mask.any():
            return False
        code = self.rows.classes.index(output)
        return float(np.mean(self.rows.codes[mask] == code)) >= precision

    # --- gaps between groups ----------------------------------------------------------------------

    def _balanced_lists(self, rules: list[Rule], fallback: Any) -> Iterator[tuple[list[Rule], Any]]:
        """Yield lists with one further rule of another output, for some rows of a group."""
        if self.rows.classes is None:
            yield from self._balanced_numbers(rules)
        outputs = [output for output in self.outputs() if output != fallback]
        cuts = [c for f in self._affordable() for c in self.rows.cuts(f, self.constraints)]
        groups = [c for c in cuts if isinstance(c, OneOf)]
        pairs: list[tuple[Condition, ...]] = [(c,) for c in cuts]
        pairs += [(g, c) for g in groups for c in cuts if c.features != g.features]
        n_yielded = 0
        for conditions in pairs:
            for output in outputs[:2]:
                yield [*rules, Rule(conditions, output)], fallback
                n_yielded += 1
                if n_yielded >= _MAX_BALANCING_RULES:
                    return

    def _balanced_numbers(self, rules: list[Rule]) -> Iterator[tuple[list[Rule], float]]:
        """Yield the list with a number per group for undecided rows, so that all means are equal.

        The group with the most undecided rows has no rule but the fallback.
        """
        decided, fixed = self._fixed_outputs(rules)
        is_open = decided < 0
        for column in self.constraints.max_gap:
            if column not in self.names or not is_open.any():
                continue
            masks = group_masks(self.rows.X, self.names, column)
            closed_means = [fixed[m].mean() for m in masks.values() if not is_open[m].any()]
            mean = float(np.mean(closed_means or self.rows.best_output(self.rows.overall, 0.0)))
            outputs = {
                group: float((mean * m.sum() - fixed[m].sum()) / (is_open & m).sum())
                for group, m in masks.items()
                if is_open[m].any()
            }
            largest = max(outputs, key=lambda group: int((is_open & masks[group]).sum()))
            feature = self.names.index(column)
            further = [
                Rule((OneOf(feature, (group,)),), output)
                for group, output in outputs.items()
                if group != largest
            ]
            yield [*rules, *further], outputs[largest]

    def _fixed_outputs(self, rules: Sequence[Rule]) -> tuple[np.ndarray, np.ndarray]:
        """Return the rule that decides each row, -1 for none, and its constant, 0 for none."""
        decided = self.rows.assign(rules)
        outputs = [
            r.output.intercept if isinstance(r.output, LinearOutput) else float(r.output)
            for r in rules
        ]
        return decided, np.array([*outputs, 0.0])[decided]


def _opposites(condition: Condition) -> Iterator[Condition]:
    """Yield conditions that do not hold where a condition holds."""
    if isinstance(condition, OneOf):
        yield replace(condition, negated=not condition.negated, missing=False)
    elif isinstance(condition, Interval):
        if math.isfinite(condition.lower):
            is_closed = not condition.lower_closed
            yield Interval(condition.feature, upper=condition.lower, upper_closed=is_closed)
        if math.isfinite(condition.upper):
            is_closed = not condition.upper_closed
            yield Interval(condition.feature, lower=condition.upper, lower_closed=is_closed)
