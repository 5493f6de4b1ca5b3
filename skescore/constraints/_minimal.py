"""Minimal rule lists: pinned rules, required features, and otherwise a constant prediction.

They show that constraints can be satisfied together where a repair of better rules fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations
from typing import Any

import numpy as np

from skescore.constraints._constraints import Constraints
from skescore.constraints._labeled_rows import LabeledRows
from skescore.constraints._pinned import rule_features
from skescore.constraints._rewriting import trivial_condition
from skescore.rules import Fallback, Interval, Rule, RuleSet, with_statistics

#: Orders of pinned rules that are tried.
_MAX_ORDERS = 24


def minimal_lists(
    source: RuleSet, constraints: Constraints, rows: LabeledRows
) -> Iterator[RuleSet]:
    """Yield simple lists, of which one often satisfies constraints that do not contradict.

    Parameters
    ----------
    source : RuleSet
        Rules with the names, classes and domain.
    constraints : Constraints
        The constraints.
    rows : LabeledRows
        The rows.
    """
    builder = _Builder(source, constraints, rows)
    seen_lists: set[tuple[Any, ...]] = set()
    for order in islice(permutations(builder.anywhere), _MAX_ORDERS):
        for fallback in builder.outputs():
            for body in builder.bodies(order, fallback):
                rules = builder.assembled(order, body)
                key = (*rules, fallback)
                if rules and key not in seen_lists:
                    seen_lists.add(key)
                    yield builder.ruleset(rules, fallback)


@dataclass
class _Builder:
    """Parts of minimal lists."""

    source: RuleSet
    constraints: Constraints
    rows: LabeledRows

    def __post_init__(self) -> None:
        names = self.source.feature_names
        self.names = list(names)
        pinned = self.constraints.pinned
        self.anywhere = [p.in_table(names) for p in pinned if p.position is None]
        self.positioned = sorted(
            ((p.position, p.in_table(names)) for p in pinned if p.position is not None),
            key=lambda pair: pair[0],
        )
        fixed = [*self.anywhere, *(rule for _, rule in self.positioned)]
        used = set().union(*map(rule_features, fixed)) if fixed else set()
        required = [self.names.index(f) for f in self.constraints.required]
        self.required = [f for f in required if f not in used]
        forbidden = {self.names.index(f) for f in self.constraints.forbidden}
        usable = [f for f in range(len(names)) if f not in forbidden]
        first = [f for f in usable if f in used or f in required]
        self.usable = [*first, *(f for f in usable if f not in first)]

    def outputs(self) -> list[Any]:
        """Return outputs of the fallback to try: the most frequent classes first, or the mean."""
        fixed = [*self.anywhere, *(rule for _, rule in self.positioned)]
        if self.rows.classes is None:
            numbers = [float(r.output) for r in fixed if isinstance(r.output, int | float)]
            mean = self.rows.best_output(self.rows.overall, 0.0)
            return list(dict.fromkeys([mean, *numbers]))
        counts = self.rows.counts(self.rows.overall)
        order = np.argsort(-counts, kind="stable").tolist()
        return [self.rows.classes[i] for i in order]

    def ruleset(self, rules: Sequence[Rule], fallback: Any) -> RuleSet:
        """Return a list with a fallback and the statistics of the rows."""
        plain = self.source.replace(
            rules=rules,
            ordered=True,
            disjoint=False,
            voting=None,
            fallback=Fallback(fallback),
        )
        return with_statistics(plain, self.rows.X, self.rows.labels)

    def assembled(self, order: Sequence[Rule], body: Sequence[Rule]) -> list[Rule]:
        """Return pinned rules and others in their positions."""
        rules = [*order, *body]
        for position, rule in self.positioned:
            rules.insert(position, rule)
        return rules

    def bodies(self, order: Sequence[Rule], output: Any) -> Iterator[list[Rule]]:
        """Yield rules that follow the pinned ones, given the output of the fallback."""
        n_before = max((p + 1 for p, _ in self.positioned), default=0)
        n_fillers = max(0, n_before - len(order) - len(self.positioned))
        needs_rule = not order and not self.positioned
        for closures in self._closures(order, output):
            open_rows = self._open_rows([*order, *closures])
            for n_splits in dict.fromkeys((n_fillers, n_fillers + 1)):
                required = self._required_rules(open_rows, output, n_splits)
                if required is not None and (required or closures or not needs_rule):
                    yield [*closures, *required]
            if needs_rule and not self.required:
                yield [*closures, Rule((), output)]
                yield from self._precise_bodies(closures, open_rows)

    def _open_rows(self, rules: Sequence[Rule]) -> np.ndarray:
        fixed = [*rules, *(rule for _, rule in self.positioned)]
        return self.rows.assign(fixed) < 0

    def _precise_bodies(self, closures: list[Rule], open_rows: np.ndarray) -> Iterator[list[Rule]]:
        """Yield a single precise rule of each class."""
        if self.constraints.min_precision is None or self.rows.classes is None:
            return
        for label in self.outputs():
            limit = self._condition_limit(label)
            premise = self.rows.peel(
                (), open_rows, label, self.constraints, self._affordable(), limit
            )
            if premise is not None:
                yield [*closures, Rule(premise, label)]

    def _affordable(self) -> list[int]:
        """Return features within the limits of cost and number."""
        constraints = self.constraints
        limit = constraints.max_features
        most = limit if isinstance(limit, int) else len(self.names)
        chosen: list[int] = []
        for feature in self.usable:
            names = [self.names[f] for f in (*chosen, feature)]
            cost = sum(constraints.feature_costs.get(name, 0.0) for name in names)
            if len(names) <= most and (
                constraints.max_cost is None or cost <= constraints.max_cost
            ):
                chosen.append(feature)
        return chosen

    def _condition_limit(self, output: Any) -> int:
        limit = self.constraints.max_conditions
        if isinstance(limit, Mapping):
            limit = limit.get(str(output))
        return 99 if limit is None else int(limit)

    # --- monotone completion of pinned rules ------------------------------------------------------

    def _closures(self, order: Sequence[Rule], output: Any) -> Iterator[list[Rule]]:
        """Yield no rules, and the rows above or below pinned rules with their outputs.

        If pinned rules do not break an order, the list of their upper sets by decreasing output is
        monotone with the lowest output elsewhere; so is the list of lower sets.
        """
        yield []
        if not self.constraints.monotone:
            return
        fixed = [*order, *(rule for _, rule in self.positioned)]
        rank = self._rank
        if not fixed or any(rank(rule.output) is None for rule in fixed):
            return
        for sign in (1, -1):
            beyond = [r for r in fixed if sign * (rank(r.output) - rank(output)) > 0]
            beyond.sort(key=lambda rule: -sign * rank(rule.output))
            rules = [self._extended(rule, sign) for rule in beyond]
            yield list(dict.fromkeys(rules))

    def _rank(self, output: Any) -> Any:
        classes = self.constraints.ranked_classes(self.source)
        if classes is not None:
            return classes.index(output)
        return float(output) if isinstance(output, int | float) else None

    def _extended(self, rule: Rule, sign: int) -> Rule:
        """Return a rule without the bounds in the direction of growing (or falling) outputs."""
        conditions = []
        for condition in rule.conditions:
            feature = condition.features[0]
            direction = self.constraints.monotone.get(self.names[feature])
            if direction is None or not isinstance(condition, Interval):
                conditions.append(condition)
            elif (direction == "+") == (sign > 0):
                conditions.append(replace(condition, upper=math.inf))
            else:
                conditions.append(replace(condition, lower=-math.inf))
        return Rule(conditions, rule.output)

    # --- required features ------------------------------------------------------------------------

    def _required_rules(
        self, open_rows: np.ndarray, output: Any, n_fillers: int
    ) -> list[Rule] | None:
        """Return rules that use all required features, and at least so many; None if impossible."""
        limit = self._condition_limit(output)
        chunks = [self.required[i : i + limit] for i in range(0, len(self.required), limit)]
        chunks = [[] for _ in range(n_fillers - len(chunks))] + chunks
        smallest = self.constraints.smallest_support(len(self.rows))
        rules: list[Rule] = []
        for i, chunk in enumerate(chunks):
            n_reserved = smallest * (len(chunks) - i - 1)
            rule = self._rule_with(chunk, open_rows, output, smallest, n_reserved)
            if rule is None:
                return None
            rules.append(rule)
            open_rows = open_rows & ~self.rows.mask(rule.conditions)
        return rules

    def _rule_with(
        self, chunk: list[int], open_rows: np.ndarray, output: Any, smallest: int, n_reserved: int
    ) -> Rule | None:
        """Return a rule that uses some features and leaves enough rows for the next ones."""
        trivial = [self._trivial(feature) for feature in chunk]
        best: tuple[int, Rule] | None = None
        for feature in chunk or self._affordable():
            others = [c for f, c in zip(chunk, trivial, strict=True) if f != feature]
            own = [c for f, c in zip(chunk, trivial, strict=True) if f == feature]
            for condition in (*own, *self.rows.cuts(feature, self.constraints)):
                rule = self._checked_rule([condition, *others], output)
                if rule is None:
                    continue
                mask = self.rows.mask(rule.conditions) & open_rows
                size = int(mask.sum())
                left = int(open_rows.sum()) - size
                if size < smallest or left < n_reserved or not self._is_precise(mask, output):
                    continue
                if best is None or size < best[0]:
                    best = size, rule
        return None if best is None else best[1]

    def _checked_rule(self, conditions: list[Any], output: Any) -> Rule | None:
        try:
            return Rule(conditions, output)
        except ValueError:
            return None

    def _trivial(self, feature: int) -> Any:
        allowed = self.constraints.allowed_thresholds(self.names[feature])
        options = trivial_condition(feature, allowed, self.rows.domain)
        return max(options, key=lambda c: int(self.rows.mask([c]).sum()))

    def _is_precise(self, mask: np.ndarray, output: Any) -> bool:
        precision = self.constraints.min_precision
        if precision is None or self.rows.classes is None or not mask.any():
            return True
        code = self.rows.classes.index(output)
        return float(np.mean(self.rows.codes[mask] == code)) >= precision
