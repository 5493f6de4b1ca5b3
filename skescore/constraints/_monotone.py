"""Exact decision whether rules are monotone in a feature, over their whole domain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skescore.constraints._cells import Box, CellSpace, FeatureCells, UndecidableError
from skescore.constraints._regions import Clause, RegionSearch, outside
from skescore.rules import LinearOutput, RuleSet

#: Index of the fallback among the rules that decide rows.
FALLBACK = -1
#: Relative differences of linear functions up to this size are rounding errors.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class MonotonicityBreach:
    """Two rows that differ in one feature and whose predictions violate its direction.

    Parameters
    ----------
    feature : int
        Index of the feature.
    lower_rule, upper_rule : int
        Indices of the rules that decide the rows with the smaller and larger value (fallback: -1).
    lower_row, upper_row : mapping of int to object
        Values of the tested features; the other features may have any value.
    """

    feature: int
    lower_rule: int
    upper_rule: int
    lower_row: Mapping[int, Any]
    upper_row: Mapping[int, Any]


class DecisionRegions:
    """Regions of the domain in which each rule, or the fallback, decides.

    Parameters
    ----------
    ruleset : RuleSet
        Rules that do not vote; one rule predicts each row.
    features : iterable of int, default=()
        Features that get cells even if no condition tests them.

    Raises
    ------
    UndecidableError
        If the rules vote, a condition is linear, or the nearest rule predicts uncovered rows.
    """

    def __init__(self, ruleset: RuleSet, features: Sequence[int] = ()) -> None:
        if ruleset.voting is not None:
            raise UndecidableError(
                f"The rules vote (voting={ruleset.voting!r}), so no single rule decides a row. "
                "rules.replace(voting=None) lets the purest rule predict."
            )
        self.ruleset = ruleset
        rules = ruleset.rules
        linear = {f for rule in rules for f, _ in _terms(rule.output)}
        self.space = CellSpace.of_rules(rules, ruleset.domain, {*features, *linear})
        self.order = [int(i) for i in ruleset.assignment_order]
        self.boxes: dict[int, list[Box]] = {
            i: self.space.boxes(rules[i].conditions) for i in self.order
        }
        self.boxes[FALLBACK] = [self.space.full]

    @cached_property
    def deciders(self) -> list[int]:
        """Rules, and possibly the fallback, that decide at least one row of the domain."""
        return [i for i in (*self.order, FALLBACK) if self.region_of(i) is not None]

    def region_of(self, rule: int) -> list[int] | None:
        """Return a region in which a rule decides; None if it decides no row of the domain."""
        return next(self.regions_of(rule), None)

    def regions_of(self, rule: int) -> Iterator[list[int]]:
        """Yield regions in which a rule decides."""
        clauses = self._clauses_before(rule)
        for box in self.boxes[rule]:
            yield from RegionSearch().regions(box, clauses)

    def _clauses_before(self, rule: int, variables: Sequence[int] | None = None) -> list[Clause]:
        """Return clauses that exclude the rows of all rules before `rule`."""
        end = len(self.order) if rule == FALLBACK else self.order.index(rule)
        earlier = (box for i in self.order[:end] for box in self.boxes[i])
        return [outside(box, self.space, variables) for box in earlier]

    def pair_regions(self, lower: int, upper: int, feature: int) -> Iterator[list[int]]:
        """Yield regions of pairs of rows that differ in one feature only.

        Parameters
        ----------
        lower, upper : int
            Rules that decide the row with the smaller and with the larger value.
        feature : int
            The feature.

        Yields
        ------
        list of int
            Cells of each feature of the space, then the cells of the feature in the upper row.
        """
        n = len(self.space.features)
        j = self.space.index[feature]
        clauses = [*self._cached_clauses(lower, None), *self._cached_clauses(upper, j)]
        ordered = self.space.cells[j].ordered
        for lower_box in self.boxes[lower]:
            for upper_box in self.boxes[upper]:
                region = [a & b for a, b in zip(lower_box, upper_box, strict=True)]
                region[j] = lower_box[j] & ordered
                region.append(upper_box[j] & ordered)
                yield from RegionSearch([(j, n)]).regions(region, clauses)

    @cached_property
    def _clause_cache(self) -> dict[tuple[int, int | None], list[Clause]]:
        return {}

    def _cached_clauses(self, rule: int, j: int | None) -> list[Clause]:
        """Return the clauses of a rule, for the upper row of a pair that differs in column `j`."""
        if (rule, j) not in self._clause_cache:
            n = len(self.space.features)
            variables = [n if i == j else i for i in range(n)]
            self._clause_cache[rule, j] = self._clauses_before(rule, variables)
        return self._clause_cache[rule, j]

    def precedes(self, lower: int, upper: int, feature: int) -> list[int] | None:
        """Return a region of pairs that two rules decide; None if there is no such pair."""
        return next(self.pair_regions(lower, upper, feature), None)

    def output(self, rule: int) -> Any:
        """Return the output of a rule or of the fallback; None if there is no prediction."""
        if rule != FALLBACK:
            return self.ruleset.rules[rule].output
        fallback = self.ruleset.fallback
        if fallback is None or fallback.policy == "abstain":
            return None
        if fallback.policy == "nearest":
            raise UndecidableError(
                "The nearest rule predicts uncovered rows, so rows that satisfy the same "
                "conditions can have different predictions. Use uncovered='default' or 'abstain'."
            )
        return fallback.output


def monotonicity_breaches(
    ruleset: RuleSet, feature: int, direction: str, ranked_classes: Sequence[Any] | None
) -> Iterator[MonotonicityBreach]:
    """Yield pairs of rows that violate monotonicity, one for each pair of rules.

    Parameters
    ----------
    ruleset : RuleSet
        Rules that do not vote; one rule predicts each row.
    feature : int
        Index of a numeric feature.
    direction : {"+", "-"}
        Whether predictions may not decrease or not increase with the feature.
    ranked_classes : sequence of labels or None
        Classes from the lowest to the highest; None for a regression.

    Yields
    ------
    MonotonicityBreach
        No breach if and only if the rules are monotone in all rows of the domain, or in all
        possible rows without a domain.

    Raises
    ------
    UndecidableError
        If the predictions are not constant or linear in boxes.
    ValueError
        If the feature has categories without an order.

    Notes
    -----
    Rows that no rule covers and for which the fallback abstains are not compared.
    """
    decisions = DecisionRegions(ruleset, [feature])
    cells = decisions.space.cells[decisions.space.index[feature]]
    check_ordered(cells, ruleset.feature_names[feature])
    yield from _BreachFinder(decisions, feature, direction, ranked_classes).breaches()


def check_ordered(cells: FeatureCells, name: str) -> None:
    """Raise a ValueError if a feature has categories that are strings."""
    if not cells.ordered:
        raise ValueError(
            f"monotone[{name!r}] requires a numeric feature, but {name!r} has categories. Omit it, "
            "or encode the categories as numbers."
        )


class _BreachFinder:
    """Search for pairs of rows whose predictions violate a direction."""

    def __init__(
        self,
        decisions: DecisionRegions,
        feature: int,
        direction: str,
        ranked_classes: Sequence[Any] | None,
    ) -> None:
        self.decisions = decisions
        self.feature = feature
        self.sign = 1.0 if direction == "+" else -1.0
        self.ranked_classes = ranked_classes
        self.position = decisions.space.index[feature]

    def breaches(self) -> Iterator[MonotonicityBreach]:
        """Yield one breach for each pair of rules that has one."""
        outputs = {i: self._value(i) for i in self.decisions.deciders}
        for lower, lower_output in outputs.items():
            for upper, upper_output in outputs.items():
                if lower_output is None or upper_output is None:
                    continue
                breach = self._breach(lower, upper, lower_output, upper_output)
                if breach is not None:
                    yield breach

    def _value(self, rule: int) -> Any:
        output = self.decisions.output(rule)
        if output is None or self.ranked_classes is None:
            return output
        return float(self.ranked_classes.index(output))

    def _breach(self, lower: int, upper: int, one: Any, other: Any) -> MonotonicityBreach | None:
        if isinstance(one, LinearOutput) or isinstance(other, LinearOutput):
            return self._linear_breach(lower, upper, _as_linear(one), _as_linear(other))
        if self.sign * (one - other) <= 0:
            return None
        region = self.decisions.precedes(lower, upper, self.feature)
        return None if region is None else self._breach_in_region(lower, upper, region)

    def _linear_breach(
        self, lower: int, upper: int, one: LinearOutput, other: LinearOutput
    ) -> MonotonicityBreach | None:
        for region in self.decisions.pair_regions(lower, upper, self.feature):
            rows = self._rows_of_largest_difference(region, one, other)
            if rows is not None:
                return MonotonicityBreach(self.feature, lower, upper, *rows)
        slope = dict(one.terms).get(self.feature, 0.0)
        if lower != upper or self.sign * slope >= 0:
            return None
        return self._breach_in_one_cell(lower)

    def _breach_in_one_cell(self, rule: int) -> MonotonicityBreach | None:
        """Return a breach by the slope of one rule between two numbers in one cell, or None."""
        j = self.position
        cells = self.decisions.space.cells[j]
        used = {feature for feature, _ in _terms(self.decisions.output(rule))}
        for region in self.decisions.regions_of(rule):
            values = self._values(region, used - {self.feature})
            if values is None:
                continue
            for i in _positions(region[j] & cells.ordered):
                cell = cells.cells[i]
                if cell.lower < cell.upper:
                    low = cell.lower if math.isfinite(cell.lower) else cell.value - 1
                    lower_row = values | {self.feature: (low + cell.value) / 2}
                    upper_row = values | {self.feature: cell.value}
                    return MonotonicityBreach(self.feature, rule, rule, lower_row, upper_row)
        return None

    def _rows_of_largest_difference(
        self, region: list[int], one: LinearOutput, other: LinearOutput
    ) -> tuple[dict[int, Any], dict[int, Any]] | None:
        """Return two rows of a region whose predictions violate the direction; None if none do."""
        a, b = dict(one.terms), dict(other.terms)
        values = self._values(region, (a.keys() | b.keys()) - {self.feature})
        if values is None:
            return None
        difference = self.sign * (one.intercept - other.intercept)
        size = abs(one.intercept) + abs(other.intercept)
        row: dict[int, Any] = {}
        for i, feature in enumerate(self.decisions.space.features):
            if i == self.position:
                continue
            slope = self.sign * (a.get(feature, 0.0) - b.get(feature, 0.0))
            if slope == 0:
                row[feature] = values[feature]
                continue
            row[feature] = max(self._ends(i, region[i]), key=lambda end: slope * end)
            difference += slope * row[feature]
            size += abs(slope * row[feature])
        slopes = self.sign * a.get(self.feature, 0.0), self.sign * b.get(self.feature, 0.0)
        gain, low, high = self._best_pair(region, *slopes)
        size += abs(slopes[0] * low) + abs(slopes[1] * high)
        is_breach = difference + gain > _TOLERANCE * (1.0 + size) or math.isinf(difference + gain)
        if not is_breach:
            return None
        return row | {self.feature: low}, row | {self.feature: high}

    def _values(self, region: list[int], used: Set[int]) -> dict[int, Any] | None:
        """Return a row of a region with numbers in the used features; None if there is none.

        A linear function has no value where one of its features is missing.
        """
        row = self.decisions.space.values(region)
        for feature in used:
            i = self.decisions.space.index[feature]
            cells = self.decisions.space.cells[i].cells
            values = [cells[p].value for p in _positions(region[i])]
            numbers = [v for v in values if v is not None and not isinstance(v, str)]
            if not numbers:
                return None
            row[feature] = numbers[0]
        return row

    def _best_pair(
        self, region: list[int], lower_slope: float, upper_slope: float
    ) -> tuple[float, float, float]:
        """Return the largest difference due to the feature itself, and its two values."""
        j = self.position
        candidates = [
            (_multiply(lower_slope, low) - _multiply(upper_slope, high), low, high)
            for p in _positions(region[j])
            for q in _positions(region[-1])
            if p < q
            for low in self._ends(j, 1 << p)
            for high in self._ends(j, 1 << q)
        ]
        return max(candidates)

    def _ends(self, position: int, bits: int) -> list[float]:
        """Return the bounds of the numeric cells of a feature among `bits`."""
        cells = self.decisions.space.cells[position].cells
        ends: list[float] = []
        for i in _positions(bits):
            cell = cells[i]
            if cell.value is None or isinstance(cell.value, str):
                continue
            is_range = not math.isnan(cell.lower)
            ends += [cell.lower, cell.upper] if is_range else [float(cell.value)]
        return ends

    def _breach_in_region(self, lower: int, upper: int, region: list[int]) -> MonotonicityBreach:
        cells = self.decisions.space.cells[self.position].cells
        row = self.decisions.space.values(region)
        pair = [(p, q) for p in _positions(region[self.position]) for q in _positions(region[-1])]
        p, q = next((p, q) for p, q in pair if p < q)
        return MonotonicityBreach(
            self.feature,
            lower,
            upper,
            row | {self.feature: cells[p].value},
            row | {self.feature: cells[q].value},
        )


def _multiply(slope: float, value: float) -> float:
    """Multiply; a slope of 0 gives 0, also for an infinite value."""
    return 0.0 if slope == 0 else slope * value


def _positions(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _as_linear(output: Any) -> LinearOutput:
    return output if isinstance(output, LinearOutput) else LinearOutput(output)


def _terms(output: Any) -> Sequence[tuple[int, float]]:
    return output.terms if isinstance(output, LinearOutput) else ()


def reachable_rules(rules: RuleSet) -> list[int]:
    """Return the indices of the rules that decide at least one row of the domain.

    Parameters
    ----------
    rules : RuleSet
        Rules that do not vote; one rule predicts each row.

    Returns
    -------
    list of int
        The indices, increasing.
    """
    return sorted(i for i in DecisionRegions(rules).deciders if i != FALLBACK)


__all__ = [
    "FALLBACK",
    "DecisionRegions",
    "MonotonicityBreach",
    "check_ordered",
    "monotonicity_breaches",
    "reachable_rules",
]
