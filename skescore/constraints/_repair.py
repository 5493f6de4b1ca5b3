"""Repair of rules so that they satisfy constraints, with a small loss of agreement."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore.constraints._constraints import Constraints
from skescore.constraints._labeled_rows import LabeledRows
from skescore.constraints._monotone import FALLBACK, DecisionRegions
from skescore.constraints._pinned import PinnedRule, rule_features
from skescore.constraints._relabel import isotonic_values, order_relation, ordered_labels
from skescore.constraints._rewriting import (
    drop_linear,
    intersect_categories,
    keep_features,
    move_bounds,
    nearest_bounds,
    respect_groups,
    rewrite,
    splits_of,
    trivial_condition,
)
from skescore.constraints._violations import GroupGap, bounds_on, gap_classes, group_gap
from skescore.metrics import group_masks
from skescore.rules import Condition, Fallback, LinearOutput, OneOf, Rule, RuleSet, with_statistics

#: Weights of the gap between groups relative to the number of wrong rows, tried in this order.
_GAP_WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
#: Cost of changing an output, which decides only between outputs with equal errors.
_CHANGE = 1e-6


@dataclass
class DraftRule:
    """Rule under repair.

    Parameters
    ----------
    rule : Rule
        The rule.
    pinned : PinnedRule, optional
        Pinned rule that it represents.
    """

    rule: Rule
    pinned: PinnedRule | None = None


def repair(ruleset: RuleSet, constraints: Constraints, rows: LabeledRows) -> RuleSet:
    """Rewrite rules in fixed steps to satisfy constraints; some may remain violated.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    constraints : Constraints
        The constraints; they must not contradict each other.
    rows : LabeledRows
        The rows with the labels that the rules explain.

    Returns
    -------
    RuleSet
        An ordered list. :func:`violations` lists the constraints that it violates.

    Notes
    -----
    The main steps are, in this order:

    1. Drop conditions on features that must not be used, round thresholds and adjust categories.
    2. Drop conditions of rules that are too long, so that the rules remain as precise as possible.
    3. Insert the pinned rules, and drop repeated rules.
    4. Drop rules that decide too few rows. If there are too many rules, drop those whose rows later
       rules predict best.
    5. Add a condition on each required feature.
    6. Assign the outputs with the smallest loss that respect monotonicity and the limits on gaps
       between groups.
    7. Tighten or drop imprecise rules, and repeat from step 4 if rules changed.
    """
    return _Repair(ruleset, constraints, rows).run()


class _Repair:
    """Ordered list of rules under repair."""

    def __init__(self, ruleset: RuleSet, constraints: Constraints, rows: LabeledRows) -> None:
        self.source = ruleset
        self.constraints = constraints
        self.rows = rows
        self.names = ruleset.feature_names
        rules = ruleset.replace(voting=None) if ruleset.voting else ruleset
        in_order = [rules.rules[int(i)] for i in rules.assignment_order]
        self.drafts = [
            DraftRule(rule)
            for rule in in_order
            if not any(pinned.is_rule(rule, self.names) for pinned in constraints.pinned)
        ]
        self.fallback = self._initial_fallback()
        self.features = self._usable_features()

    def _initial_fallback(self) -> Fallback:
        fallback = self.source.fallback
        if fallback is None:
            return Fallback(self.rows.best_output(self.rows.overall, 0.0))
        return replace(fallback, policy="default") if fallback.policy == "nearest" else fallback

    @property
    def rules(self) -> list[Rule]:
        """The rules in their order."""
        return [draft.rule for draft in self.drafts]

    def run(self) -> RuleSet:
        """Apply all steps."""
        self._restrict_features()
        self._restrict_conditions()
        self._shorten_rules()
        self._insert_pinned()
        self._drop_repeated()
        for _ in range(3 * len(self.drafts) + 5):
            self._drop_unsupported()
            self._drop_excess()
            for feature in self.constraints.required:
                self._require_feature(self.names.index(feature))
            self._move_pinned()
            self._update_fallback()
            self._relabel()
            if self.rows.classes is None:
                break
            if not self._improve_precision() and not self._drop_of_class():
                break
        if not self.drafts:
            self.drafts = [DraftRule(Rule((), self.fallback.output))]
        return self.result()

    def result(self) -> RuleSet:
        """Return the rules with the statistics of the rows."""
        return with_statistics(self._ruleset(), self.rows.X, self.rows.labels)

    def _ruleset(self) -> RuleSet:
        return self.source.replace(
            rules=[replace(rule, statistics=None) for rule in self.rules],
            ordered=True,
            disjoint=False,
            voting=None,
            fallback=self.fallback,
        )

    # --- features and conditions ------------------------------------------------------------------

    def _usable_features(self) -> set[int]:
        """Choose allowed features: first required ones, then the features that decide most rows."""
        constraints, names = self.constraints, self.names
        allowed_features = {j for j, name in enumerate(names) if name not in constraints.forbidden}
        limit = constraints.max_features
        max_features = limit if isinstance(limit, int) else len(names)
        if max_features >= len(names) and constraints.max_cost is None:
            return allowed_features
        pinned = [f for p in constraints.pinned for f in p.feature_names]
        required = dict.fromkeys(names.index(f) for f in (*pinned, *constraints.required))
        weight = dict.fromkeys(sorted(allowed_features), 0.0)
        assigned = self.rows.assign(self.rules)
        for i, rule in enumerate(self.rules):
            for feature in rule_features(rule) & allowed_features:
                weight[feature] += float((assigned == i).sum()) + _CHANGE
        by_weight = sorted((f for f in weight if weight[f] > 0), key=lambda f: -weight[f])
        features: set[int] = set()
        for feature in dict.fromkeys([*required, *by_weight]):
            is_affordable = constraints.affords(names[j] for j in {*features, feature})
            if feature in required or (len(features) < max_features and is_affordable):
                features.add(feature)
        return features

    def _rewrite(self, change: Callable[[Any], Any]) -> None:
        """Rewrite the conditions of all rules; drop rules that could never hold."""
        drafts = []
        for draft in self.drafts:
            conditions = rewrite(draft.rule.conditions, change)
            if conditions is None:
                continue
            try:
                drafts.append(DraftRule(replace(draft.rule, conditions=tuple(conditions))))
            except ValueError:  # the new conditions contradict each other
                continue
        self.drafts = drafts

    def _restrict_features(self) -> None:
        used = set().union(*map(rule_features, self.rules)) if self.drafts else set()
        if not used <= self.features:
            self._rewrite(keep_features(self.features))
            for draft in self.drafts:
                terms = getattr(draft.rule.output, "terms", ())
                if any(f not in self.features for f, _ in terms):
                    mask = self.rows.mask(draft.rule.conditions)
                    output = self.rows.best_output(mask, self.fallback.output)
                    draft.rule = replace(draft.rule, output=output)

    def _restrict_conditions(self) -> None:
        constraints = self.constraints
        if constraints.monotone or constraints.pinned:
            self._rewrite(drop_linear)
        if constraints.apart:
            self._split_apart()
        if constraints.apart or constraints.together:
            self._rewrite(respect_groups(constraints, self.names, self.rows.domain))
        if constraints.thresholds:
            self._rewrite(move_bounds(self._allowed_bounds()))

    def _allowed_bounds(self) -> dict[tuple[int, float], float]:
        """Return an allowed replacement for each bound that is not allowed."""
        new_bounds: dict[tuple[int, float], float] = {}
        for feature, name in enumerate(self.names):
            allowed = self.constraints.allowed_thresholds(name)
            bounds = {b for rule in self.rules for b in bounds_on(rule, feature)}
            if allowed is None or all(map(allowed.allows, bounds)):
                continue
            nearest = nearest_bounds(sorted(bounds), allowed, self.rows.column(feature))
            new_bounds |= {(feature, bound): target for bound, target in nearest.items()}
        return new_bounds

    def _split_apart(self) -> None:
        """Split rules that accept several categories that must be kept apart."""
        drafts: list[DraftRule] = []
        for draft in self.drafts:
            parts: list[Sequence[Condition]] = []
            for condition in intersect_categories(draft.rule.conditions, self.rows.domain):
                if isinstance(condition, OneOf):
                    apart = self.constraints.apart.get(self.names[condition.feature], ())
                    parts.append(splits_of(condition, apart, self.rows.domain))
                else:
                    parts.append([condition])
            drafts += [
                DraftRule(replace(draft.rule, conditions=conditions))
                for conditions in itertools.product(*parts)
            ]
        self.drafts = drafts

    def _condition_limit(self, output: Any) -> float:
        limit = self.constraints.max_conditions
        if not isinstance(limit, Mapping):
            return math.inf if limit is None else limit
        if self.constraints.monotone:  # the class may still change
            return min(limit.values())
        return limit.get(str(output), math.inf)

    def _shorten_rules(self) -> None:
        """Drop conditions of rules that are too long, keeping them as precise as possible."""
        for draft in self.drafts:
            rule = draft.rule
            while rule.n_conditions > self._condition_limit(rule.output):
                shorter = [
                    replace(rule, conditions=(*rule.conditions[:i], *rule.conditions[i + 1 :]))
                    for i in range(rule.n_conditions)
                ]
                rule = min(shorter, key=self._error_rate)
            draft.rule = rule

    def _error_rate(self, rule: Rule) -> float:
        mask = self.rows.mask(rule.conditions)
        return self.rows.error(mask, rule.output) / max(1, int(mask.sum()))

    # --- order and number of rules ----------------------------------------------------------------

    def _insert_pinned(self) -> None:
        pinned = [DraftRule(p.in_table(self.names), p) for p in self.constraints.pinned]
        self.drafts = [*pinned, *self.drafts]
        self._move_pinned()

    def _move_pinned(self) -> None:
        """Put pinned rules in front, or at their position."""
        positioned = [d for d in self.drafts if d.pinned and d.pinned.position is not None]
        anywhere = [d for d in self.drafts if d.pinned and d.pinned.position is None]
        self.drafts = [*anywhere, *(d for d in self.drafts if not d.pinned)]
        for draft in sorted(positioned, key=_position):
            self.drafts.insert(min(_position(draft), len(self.drafts)), draft)

    def _drop_repeated(self) -> None:
        """Drop rules with the premise of an earlier rule."""
        premises: set[frozenset[Any]] = set()
        drafts = []
        for draft in self.drafts:
            premise = frozenset(draft.rule.conditions)
            if premise not in premises or draft.pinned:
                drafts.append(draft)
            premises.add(premise)
        self.drafts = drafts

    def _drop_unsupported(self) -> None:
        smallest = self.constraints.smallest_support(len(self.rows))
        while smallest:
            assigned = self.rows.assign(self.rules)
            n_rows = np.bincount(assigned[assigned >= 0], minlength=len(self.drafts))
            if not self._drop_cheapest(np.flatnonzero(n_rows < smallest).tolist()):
                return

    def _drop_excess(self) -> None:
        limit = self.constraints.max_rules
        while limit is not None and len(self.drafts) > limit:
            if not self._drop_cheapest(range(len(self.drafts))):
                return

    def _drop_cheapest(self, candidates: Sequence[int]) -> bool:
        """Drop the rule that adds the fewest errors; return False if all candidates are pinned."""
        droppable = [i for i in candidates if not self.drafts[i].pinned]
        if not droppable:
            return False
        rules = self.rules
        assigned = self.rows.assign(rules)
        fallback = self.fallback.output

        def added_errors(index: int) -> float:
            is_decided = assigned == index
            successor = self.rows.assign(rules[index + 1 :])
            total = -self.rows.error(is_decided, rules[index].output)
            for i in np.unique(successor[is_decided]).tolist():
                output = fallback if i < 0 else rules[index + 1 + i].output
                total += self.rows.error(is_decided & (successor == i), output)
            return total

        del self.drafts[min(droppable, key=added_errors)]
        return True

    # --- required features ------------------------------------------------------------------------

    def _require_feature(self, feature: int) -> None:
        """Add the condition or rule on a feature that lowers the agreement least."""
        if any(feature in rule_features(rule) for rule in self.rules):
            return
        cuts = self.rows.cuts(feature, self.constraints)
        allowed = self.constraints.allowed_thresholds(self.names[feature])
        trivial_conditions = trivial_condition(feature, allowed, self.rows.domain)
        candidates = []
        for condition in (*cuts, *trivial_conditions):
            candidates += self._lists_with_condition(condition)
        if candidates:
            self.drafts = min(candidates, key=lambda c: c[0])[1]

    def _lists_with_condition(self, condition: Any) -> list[tuple[float, list[DraftRule]]]:
        """Return the lists in which one rule has a further condition, or a rule is added."""
        lists = []
        limit = self.constraints.max_rules
        for i, draft in enumerate(self.drafts):
            rule = draft.rule
            if not draft.pinned and rule.n_conditions < self._condition_limit(rule.output):
                longer = replace(rule, conditions=(*rule.conditions, condition))
                lists.append([*self.drafts[:i], DraftRule(longer), *self.drafts[i + 1 :]])
        if limit is None or len(self.drafts) < limit:
            n_pinned = sum(draft.pinned is not None for draft in self.drafts)
            for position in sorted({n_pinned, len(self.drafts)}):
                before, after = self.drafts[:position], self.drafts[position:]
                open_rows = self.rows.assign([d.rule for d in before]) < 0
                mask = self.rows.mask([condition]) & open_rows
                output = self.rows.best_output(mask, self.fallback.output)
                lists.append([*before, DraftRule(Rule((condition,), output)), *after])
        smallest = self.constraints.smallest_support(len(self.rows))
        candidates = []
        for drafts in lists:
            error, fewest = self._error_of(drafts)
            candidates.append((error + (1e12 if fewest < smallest else 0.0), drafts))
        return candidates

    def _error_of(self, drafts: list[DraftRule]) -> tuple[float, int]:
        """Return the errors of a list, and the smallest number of rows of a rule."""
        rules = [draft.rule for draft in drafts]
        assigned = self.rows.assign(rules)
        masks = [assigned == i for i in range(len(rules))]
        error = sum(self.rows.error(m, r.output) for m, r in zip(masks, rules, strict=True))
        error += self.rows.error(assigned < 0, self.fallback.output)
        return error, min((int(m.sum()) for m in masks), default=0)

    # --- outputs ----------------------------------------------------------------------------------

    def _update_fallback(self) -> None:
        uncovered = self.rows.assign(self.rules) < 0
        self._set_output(FALLBACK, self.rows.best_output(uncovered, self.fallback.output))

    def _set_output(self, rule: int, output: Any) -> None:
        if rule != FALLBACK:
            draft = self.drafts[rule]
            draft.rule = replace(draft.rule, output=output)
        elif output != self.fallback.output:
            self.fallback = replace(self.fallback, output=output, class_counts=None)

    def _relabel(self) -> None:
        """Assign the outputs with the smallest loss that respect monotonicity and gaps."""
        if self.rows.classes is None:
            self._fit_values()
        else:
            self._fit_labels()

    def _decided_rows(self) -> dict[int, np.ndarray]:
        assigned = self.rows.assign(self.rules)
        return {i: assigned == i for i in range(FALLBACK, len(self.drafts))}

    def _relation(self) -> list[tuple[int, int]]:
        monotone = {self.names.index(f): d for f, d in self.constraints.monotone.items()}
        return order_relation(DecisionRegions(self._ruleset(), list(monotone)), monotone)

    def _fit_labels(self) -> None:
        classes = self.constraints.ranked_classes(self.source)
        assert classes is not None
        masks = self._decided_rows()
        nodes = list(masks)
        index = {rule: i for i, rule in enumerate(nodes)}
        relation = [(index[a], index[b]) for a, b in self._relation()]
        costs = np.array([self._label_costs(i, masks[i], classes) for i in nodes])
        penalty = np.zeros_like(costs)
        for weight in (0.0, *_GAP_WEIGHTS):
            ranks = ordered_labels(costs + weight * penalty, relation)
            for rule, rank in zip(nodes, ranks.tolist(), strict=True):
                if rule == FALLBACK or not self.drafts[rule].pinned:
                    self._set_output(rule, classes[rank])
            column = self._widest_gap()
            if column is None:
                return
            penalty += self._gap_penalty(column, masks, classes)
        self._use_one_label(masks)

    def _label_costs(self, rule: int, mask: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
        """Return the number of wrong rows for each label of a rule."""
        assert self.rows.classes is not None
        counts = self.rows.counts(mask)
        costs = np.array([float(mask.sum() - counts[self.rows.classes.index(c)]) for c in classes])
        current = self.fallback.output if rule == FALLBACK else self.rules[rule].output
        is_other = np.array([c != current for c in classes])
        if rule != FALLBACK and self.drafts[rule].pinned:
            return np.where(is_other, np.inf, costs)
        return costs + _CHANGE * is_other

    def _widest_gap(self) -> str | None:
        """Return the column whose groups differ most beyond its limit; None if there is none."""
        ruleset = self._ruleset()
        for column, limit in self.constraints.max_gap.items():
            if group_gap(ruleset, self.constraints, self.rows.X, column).exceeds(limit):
                return column
        return None

    def _gap_penalty(
        self, column: str, masks: Mapping[int, np.ndarray], classes: Sequence[Any]
    ) -> np.ndarray:
        """Return how much each label of each rule widens the gap, in rows."""
        groups = group_masks(self.rows.X, self.names, column)
        predictions = self._ruleset().predict(self.rows.X)
        penalty = np.zeros((len(masks), len(classes)))
        for label in gap_classes(self.source.classes, self.constraints):
            means = {g: float(np.mean(predictions[m] == label)) for g, m in groups.items()}
            high, low = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
            gap = GroupGap(means[low], means[high])
            if not gap.exceeds(self.constraints.max_gap[column]):
                continue
            for i, mask in enumerate(masks.values()):
                widening = np.mean(mask[groups[high]]) - np.mean(mask[groups[low]])
                penalty[i, list(classes).index(label)] += widening * len(self.rows) / 2
        return penalty

    def _use_one_label(self, masks: Mapping[int, np.ndarray]) -> None:
        """Give all rules that are not pinned the most frequent label, which removes the gap."""
        label = self.rows.best_output(self.rows.overall, self.fallback.output)
        for rule in masks:
            if rule == FALLBACK or not self.drafts[rule].pinned:
                self._set_output(rule, label)

    def _fit_values(self) -> None:
        if self.constraints.monotone:
            self._fit_monotone_values()
        column = self._widest_gap()
        if column is not None:
            self._shrink_outputs(column)

    def _fit_monotone_values(self) -> None:
        relation, masks = self._relation(), self._decided_rows()
        index = {rule: i for i, rule in enumerate(masks)}
        fixed: dict[int, float] = {}
        for rule, mask in masks.items():
            output = self.fallback.output if rule == FALLBACK else self.rules[rule].output
            is_pinned = rule != FALLBACK and self.drafts[rule].pinned is not None
            if is_pinned and not isinstance(output, LinearOutput):
                fixed[index[rule]] = float(output)
            elif not is_pinned and isinstance(output, LinearOutput):
                self._set_output(rule, self.rows.best_output(mask, output.intercept))
        outputs = [*(rule.output for rule in self.rules)]
        values = [self.fallback.output if i == FALLBACK else outputs[i] for i in masks]
        numbers = np.array([getattr(v, "intercept", v) for v in values], dtype=float)
        weights = np.array([mask.sum() for mask in masks.values()], dtype=float)
        pairs = [(index[a], index[b]) for a, b in relation]
        numbers = isotonic_values(numbers, weights, pairs, fixed)
        for rule, number in zip(masks, numbers.tolist(), strict=True):
            if rule == FALLBACK or not self.drafts[rule].pinned:
                self._set_output(rule, number)

    def _shrink_outputs(self, column: str) -> None:
        """Move all outputs toward their mean until the groups differ little enough."""
        limit = self.constraints.max_gap[column]
        center = float(np.mean(self.rows.values))
        gap = group_gap(self._ruleset(), self.constraints, self.rows.X, column)
        factor = limit / gap.size * (1 - 1e-9)
        for rule in self._decided_rows():
            if rule != FALLBACK and self.drafts[rule].pinned:
                continue
            output = self.fallback.output if rule == FALLBACK else self.rules[rule].output
            self._set_output(rule, _shrink_output(output, center, factor))

    # --- precision and classes --------------------------------------------------------------------

    def _improve_precision(self) -> bool:
        precision = self.constraints.min_precision
        if precision is None:
            return False
        assert self.rows.classes is not None
        masks = self._decided_rows()
        for i, draft in enumerate(self.drafts):
            if draft.pinned:
                continue
            if not masks[i].any():
                del self.drafts[i]
                return True
            rule = draft.rule
            code = self.rows.classes.index(rule.output)
            if float(np.mean(self.rows.codes[masks[i]] == code)) >= precision:
                continue
            remaining = self.rows.assign(self.rules[:i]) < 0
            n_further = int(min(99, self._condition_limit(rule.output))) - rule.n_conditions
            premise = self.rows.peel(
                rule.conditions,
                remaining,
                rule.output,
                self.constraints,
                sorted(self.features),
                n_further,
            )
            if premise is None:
                del self.drafts[i]
            else:
                draft.rule = replace(rule, conditions=tuple(premise))
            return True
        return False

    def _drop_of_class(self) -> bool:
        """Drop a rule of a class with too many rules or features."""
        limits = self.constraints.max_rules_per_class
        features = self.constraints.max_features
        for output in dict.fromkeys(rule.output for rule in self.rules):
            members = [i for i, rule in enumerate(self.rules) if rule.output == output]
            limit = limits.get(str(output)) if isinstance(limits, Mapping) else limits
            is_over = limit is not None and len(members) > limit
            if isinstance(features, Mapping) and str(output) in features:
                used = set().union(*(rule_features(self.rules[i]) for i in members))
                is_over = is_over or len(used) > features[str(output)]
            if is_over and self._drop_cheapest(members):
                return True
        return False


def _position(draft: DraftRule) -> int:
    assert draft.pinned is not None
    return draft.pinned.position or 0


def _shrink_output(output: Any, center: float, factor: float) -> Any:
    if not isinstance(output, LinearOutput):
        return center + factor * (output - center)
    terms = tuple((f, factor * c) for f, c in output.terms)
    return LinearOutput(center + factor * (output.intercept - center), terms)
