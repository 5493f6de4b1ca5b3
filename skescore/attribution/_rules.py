"""Features that determine the rules' prediction for a row: responsibility under a rule set."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, count, islice, pairwise, product
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd

from skescore._validation import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    label_order,
    python_value,
)
from skescore.attribution._result import Attribution
from skescore.metrics.attribution import Removal, faithfulness
from skescore.rules import (
    AtLeast,
    Condition,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    RowTable,
    RuleSet,
)
from skescore.rules._conditions import is_missing
from skescore.rules._prediction import assigned_rule

__all__ = ["RuleAttribution", "local_faithfulness", "rule_attribution"]


# Rows in the same cells of all features satisfy the same conditions on single features. So a change
# of a feature is a move to another of its cells, and a premise is one set of cells per feature. A
# premise that counts conditions (M-of-N) becomes several such premises.

#: Maximum number of premises to which M-of-N conditions of one rule set are expanded.
_MAX_PREMISES = 4096


#: Placeholder for every value that no rule names.
_OTHER = object()


class _FeatureCells:
    """Cells of one feature, numbered from 0; the last one contains missing values.

    `cuts` are bounds of intervals, `listed` are values in lists, `categories` are all values if the
    domain lists them. Moves do not leave `span`.
    """

    def __init__(
        self,
        feature: int,
        cuts: set[float],
        listed: set[Any],
        categories: tuple[Any, ...] | None,
        span: tuple[float, float] | None,
    ) -> None:
        # A feature without bounds or lists is a number with one interval.
        self.feature, self.numeric = feature, bool(cuts) or not listed
        if self.numeric:
            self.cuts = np.array(
                sorted(cuts | {float(v) for v in listed if not isinstance(v, str)})
            )
            points = [_point_of_cell(*ends, span) for ends in _cell_bounds(self.cuts)]
            values: list[Any] = [value for value, _ in points]
            reachable = [is_reachable for _, is_reachable in points]
        else:
            names = sorted({*listed, *(categories or ())}, key=label_order)
            # Values beyond the known categories are unreachable, but a row may contain them.
            values, reachable = [*names, _OTHER], [True] * len(names) + [categories is None]
            self.codes = {value: code for code, value in enumerate(names)}
        #: One value of each cell; the cell of missing values is the last.
        self.values = np.empty(len(values) + 1, dtype=object)
        self.values[:-1], self.values[-1] = values, None
        self.reachable = np.array([*reachable, False])

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> np.ndarray:
        """Return the values as conditions read them."""
        if self.numeric:
            return np.array([*self.values[:-1], math.nan], dtype=float)
        return self.values

    def locate(self, table: RowTable) -> np.ndarray:
        """Return the cell of every row."""
        missing = len(self) - 1
        if self.numeric and not len(self.cuts):  # nothing compares it with numbers
            is_absent = is_missing(np.asarray(table.column(self.feature)))
            return np.where(is_absent, missing, 0)
        if self.numeric:
            column = table.numbers(self.feature, slice(None))
            left = np.searchsorted(self.cuts, column)
            cells = 2 * left
            on_cut = left < len(self.cuts)
            on_cut[on_cut] = self.cuts[left[on_cut]] == column[on_cut]
            cells[on_cut] += 1
            cells[np.isnan(column)] = missing
            return np.asarray(cells)
        other = missing - 1
        return np.array(
            [
                missing if pd.isna(value) else self.codes.get(value, other)
                for value in map(python_value, table.column(self.feature).tolist())
            ],
            dtype=np.intp,
        )


def _cell_bounds(cuts: np.ndarray) -> Iterator[tuple[float, float]]:
    """Yield the bounds of all cells of a number line: intervals between cuts, and the cuts."""
    ends = [-math.inf, *cuts.tolist(), math.inf]
    for low, high in pairwise(ends):
        yield low, high
        if high < math.inf:
            yield high, high


def _point_of_cell(low: float, high: float, span: tuple[float, float] | None) -> tuple[float, bool]:
    """Return a value of a cell, and whether it lies both in the cell and in the domain."""
    if low == high:
        return low, span is None or span[0] <= low <= span[1]
    if span is not None and max(low, span[0]) <= min(high, span[1]):
        inner_low, inner_high = max(low, span[0]), min(high, span[1])
        # Cuts are cells of their own, so only bounds of the domain can lie in this cell.
        for value in (inner_low / 2 + inner_high / 2, inner_low, inner_high):
            if low < value < high:
                return value, True
    if math.isinf(low) and math.isinf(high):
        value = 0.0
    elif math.isinf(low):
        value = min(high - 1.0, math.nextafter(high, -math.inf))
    elif math.isinf(high):
        value = max(low + 1.0, math.nextafter(low, math.inf))
    else:
        value = low / 2 + high / 2
    inside = low < value < high  # False if no float lies between the bounds
    return value, inside and span is None


def _feature_cells(ruleset: RuleSet, *, beyond_domain: bool) -> list[_FeatureCells]:
    """Return the cells of every feature with a condition on a single feature."""
    cuts: dict[int, set[float]] = {}
    listed: dict[int, set[Any]] = {}
    for rule in ruleset.rules:
        for condition in rule.conditions:
            _collect_values(condition, cuts, listed)
    domain = None if beyond_domain else ruleset.domain
    result = []
    for j in sorted(cuts.keys() | listed.keys()):
        categories = ruleset.domain.values_of(j) if ruleset.domain is not None else None
        span = None if domain is None or categories else (domain.lower[j], domain.upper[j])
        values = listed.get(j) or (set() if j in cuts else set(categories or ()))
        result.append(_FeatureCells(j, cuts.get(j, set()), values, categories, span))
    return result


def _collect_values(
    condition: Condition, cuts: dict[int, set[float]], listed: dict[int, set[Any]]
) -> None:
    if isinstance(condition, AtLeast):
        for part in condition.conditions:
            _collect_values(part, cuts, listed)
    elif isinstance(condition, Interval):
        ends = {bound for bound in (condition.lower, condition.upper) if math.isfinite(bound)}
        cuts.setdefault(condition.feature, set()).update(ends)
    elif isinstance(condition, OneOf):
        listed.setdefault(condition.feature, set()).update(condition.values)
    elif isinstance(condition, Missing):
        listed.setdefault(condition.feature, set())


#: Premise as a map from features (indices into the cells) to the cells that satisfy it, as bits.
Premise = dict[int, int]


def _premises(ruleset: RuleSet, cells: list[_FeatureCells]) -> list[tuple[int, Premise]] | None:
    """Return all rules as premises over cells, in the order in which they apply.

    None if rules vote, a condition combines several features, or there would be too many premises.
    """
    if ruleset.voting is not None:
        return None
    index_of = {cell.feature: at for at, cell in enumerate(cells)}
    result: list[tuple[int, Premise]] = []
    for index in ruleset.assignment_order.tolist():
        alternatives = _written_out(ruleset.rules[index].conditions, cells, index_of)
        if alternatives is None or len(result) + len(alternatives) > _MAX_PREMISES:
            return None
        result += [(index, premise) for premise in alternatives]
    return result


def _written_out(
    conditions: tuple[Condition, ...], cells: list[_FeatureCells], index_of: dict[int, int]
) -> list[Premise] | None:
    """Convert a conjunction to alternative premises; None if it is linear or they are too many."""
    result: list[Premise] = [{}]
    for condition in conditions:
        if isinstance(condition, Linear):
            return None
        if isinstance(condition, AtLeast):
            n_premises = 0
            choices: list[Premise] = []
            for subset in combinations(condition.conditions, condition.m):
                options = _written_out(subset, cells, index_of)
                if options is None or (n_premises := n_premises + len(options)) > _MAX_PREMISES:
                    return None
                choices += options
        else:
            j = index_of[condition.feature]
            values = cells[j].numbers()
            holds = condition.holds(lambda _, values=values: values)  # type: ignore[misc]
            choices = [{j: _as_bits(holds)}]
        if len(result) * len(choices) > _MAX_PREMISES:
            return None
        conjunctions = (_conjoin(one, two) for one, two in product(result, choices))
        distinct = {tuple(sorted(p.items())): p for p in conjunctions if p is not None}
        result = list(distinct.values())
    return result


def _conjoin(one: Premise, other: Premise) -> Premise | None:
    """Return the conjunction of two premises; None if they contradict each other."""
    result = dict(one)
    for j, bits in other.items():
        result[j] = result.get(j, -1) & bits
        if not result[j]:
            return None
    return result


def _as_bits(flags: np.ndarray) -> int:
    """Pack flags into an integer, the first flag as its lowest bit."""
    return sum(1 << int(i) for i in np.flatnonzero(flags))


#: Number of rows tested at a time.
_BATCH = 1 << 12

FlipSet: TypeAlias = tuple[int, ...]


class _FlipResult(NamedTuple):
    """Minimal flip sets of one row in order of their size."""

    sets: list[FlipSet]
    #: All minimal flip sets with fewer features are known; None if all of any size are known.
    complete_below: int | None
    #: Number of tested changes.
    steps: int


class _PremiseSearch:
    """Search for flip sets of rules whose premises are sets of cells.

    `allowed` holds for each feature the cells that a move may lead to, as bits. `differ` returns
    for a rule (-1 for none) which rules have a different prediction, and in the last entry, whether
    uncovered rows do.
    """

    def __init__(
        self,
        premises: Sequence[tuple[int, Premise]],
        allowed: Sequence[int],
        differ: Callable[[int], np.ndarray],
        max_steps: int,
    ) -> None:
        self.premises = premises
        self.allowed = allowed
        self.differ = differ
        self.max_steps = max_steps
        meet = np.tril(self._intersecting_pairs(), -1)
        #: Earlier premises that a row can satisfy together with this one.
        self.ahead = [np.flatnonzero(row).tolist() for row in meet]
        self.covering = self._cover_all_cells()
        self._known: dict[int, tuple[list[bool], dict[int, list[int]]]] = {}

    def _intersecting_pairs(self) -> np.ndarray:
        """Return which pairs of premises share a cell of every feature."""
        result = np.ones((len(self.premises), len(self.premises)), dtype=bool)
        for at in sorted({at for _, premise in self.premises for at in premise}):
            limited = np.array([k for k, (_, p) in enumerate(self.premises) if at in p])
            sets = [self.premises[k][1][at] for k in limited]
            width = max(bits.bit_length() for bits in sets)
            cells = np.array([[bits >> c & 1 for c in range(width)] for bits in sets], np.float32)
            result[np.ix_(limited, limited)] &= cells @ cells.T > 0
        return result

    def _cover_all_cells(self) -> bool:
        """Return whether disjoint premises cover all reachable cells."""
        if any(self.ahead):
            return False
        total, everything = 0, 1
        for bits in self.allowed:
            everything *= bits.bit_count()
        for _, premise in self.premises:
            size = 1
            for at, bits in enumerate(self.allowed):
                size *= (premise.get(at, -1) & bits).bit_count()
            total += size
        return total == everything

    def find(self, cells: Sequence[int]) -> _FlipResult:
        """Find the flip sets of a row in the given cells.

        A different prediction comes from a premise of a rule with another prediction (or from no
        rule), if no earlier premise with the current prediction is satisfied. A partial change
        stores for each feature the cells that remain possible. Changes are visited by increasing
        number of moved features, so a complete change is minimal unless it contains an earlier one.
        """
        row_bits = [1 << cell for cell in cells]
        applies = next(
            (rule for rule, p in self.premises if all(b & row_bits[at] for at, b in p.items())), -1
        )
        other = self.differ(applies)
        if applies not in self._known:
            self._known[applies] = [not other[rule] for rule, _ in self.premises], {}
        same, avoided = self._known[applies]
        queue: list[tuple[int, int, int, dict[int, int]]] = []
        serial = count()
        for k, (_, premise) in enumerate(self.premises):
            if same[k]:
                continue
            # Features that violate the premise must move to cells that satisfy it.
            moved = {a: b & self.allowed[a] for a, b in premise.items() if not b & row_bits[a]}
            if all(moved.values()):
                queue.append((len(moved), next(serial), k, moved))
        are_allowed = all(
            cell & allowed for cell, allowed in zip(row_bits, self.allowed, strict=True)
        )
        if other[-1] and not (self.covering and are_allowed):
            queue.append((0, next(serial), len(self.premises), {}))
        for _, _, k, _ in queue:
            if k not in avoided:
                ahead = self.ahead[k] if k < len(same) else range(k)
                avoided[k] = [i for i in ahead if same[i]]
        return self._search(row_bits, queue, avoided, serial)

    def _search(
        self,
        row_bits: list[int],
        queue: list[tuple[int, int, int, dict[int, int]]],
        avoided: dict[int, list[int]],
        serial: count[int],
    ) -> _FlipResult:
        heapq.heapify(queue)
        flip_sets: list[frozenset[int]] = []
        visited: set[tuple[int, frozenset[tuple[int, int]]]] = set()
        steps = 0
        while queue:
            size, _, k, moved = heapq.heappop(queue)
            if any(flip_set <= moved.keys() for flip_set in flip_sets):
                continue
            if steps == self.max_steps:
                return _FlipResult(_sorted(flip_sets), size, steps)
            steps += 1
            breaking = self._first_satisfied(row_bits, moved, avoided[k])
            if breaking is None:
                flip_sets.append(frozenset(moved))
                continue
            target = self.premises[k][1] if k < len(self.premises) else {}
            for j, bits in breaking.items():
                allowed_cells = moved.get(j, target.get(j, -1) & self.allowed[j]) & ~bits
                if not allowed_cells:
                    continue
                child = {**moved, j: allowed_cells}
                key = k, frozenset(child.items())
                if key not in visited:
                    visited.add(key)
                    heapq.heappush(queue, (len(child), next(serial), k, child))
        return _FlipResult(_sorted(flip_sets), None, steps)

    def _first_satisfied(
        self, row_bits: list[int], moved: dict[int, int], indices: list[int]
    ) -> Premise | None:
        """Return the first premise that a row may satisfy after the partial change, or None."""
        for i in indices:
            premise = self.premises[i][1]
            if all(bits & moved.get(j, row_bits[j]) for j, bits in premise.items()):
                return premise
        return None


def _flips_by_trial(
    options: Sequence[Sequence[int]],
    changed: Callable[[list[dict[int, int]]], np.ndarray],
    max_steps: int,
) -> _FlipResult:
    """Find flip sets by testing combinations of changes of an increasing number of features."""
    flip_sets: list[frozenset[int]] = []
    movable = [j for j, choices in enumerate(options) if choices]
    steps = 0
    for size in range(1, len(movable) + 1):
        has_candidates = False
        for subset in combinations(movable, size):
            if any(flip_set <= set(subset) for flip_set in flip_sets):
                continue
            has_candidates = True
            changes = product(*(options[j] for j in subset))
            while batch := [
                dict(zip(subset, c, strict=True))
                for c in islice(changes, min(_BATCH, max_steps - steps + 1))
            ]:
                if steps + len(batch) > max_steps:
                    return _FlipResult(_sorted(flip_sets), size, steps)
                steps += len(batch)
                if changed(batch).any():
                    flip_sets.append(frozenset(subset))
                    break
        if not has_candidates:
            break
    return _FlipResult(_sorted(flip_sets), None, steps)


def _sorted(flip_sets: list[frozenset[int]]) -> list[FlipSet]:
    return sorted((tuple(sorted(s)) for s in flip_sets), key=lambda s: (len(s), s))


#: Relative tolerance for sums of votes, which may be rounded differently.
_ROUNDING = 1e-9


def _linear_conditions(conditions: tuple[Condition, ...]) -> Iterator[Linear]:
    """Yield all linear conditions, including nested ones."""
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _linear_conditions(condition.conditions)
        elif isinstance(condition, Linear):
            yield condition


def _affine_votes(ruleset: RuleSet) -> list[LinearOutput]:
    """Return the linear outputs and weights of voting rules."""
    if ruleset.voting is None:
        return []
    parts = [part for rule in ruleset.rules for part in (rule.output, rule.weight)]
    return [part for part in parts if isinstance(part, LinearOutput) and part.terms]


def _by_nearest_box(ruleset: RuleSet) -> bool:
    """Return whether uncovered rows are predicted by the nearest rule."""
    return ruleset.fallback is not None and ruleset.fallback.policy == "nearest"


class _RowTrials:
    """Tests of changed rows; parameters are as in :func:`rule_attribution`."""

    def __init__(
        self,
        ruleset: RuleSet,
        table: RowTable,
        cells: list[_FeatureCells],
        differ: Callable[[int], np.ndarray],
        *,
        by: str,
        tolerance: float,
        beyond_domain: bool,
    ) -> None:
        self.ruleset, self.table, self.differ = ruleset, table, differ
        self.by, self.tolerance = by, tolerance
        self.domain = None if beyond_domain else ruleset.domain
        self.linear = [c for rule in ruleset.rules for c in _linear_conditions(rule.conditions)]
        summed_features = {f for condition in self.linear for f in condition.features}
        summed_features |= {f for part in _affine_votes(ruleset) for f, _ in part.terms}
        self.cells = {cell.feature: (cell, cell.locate(table)) for cell in cells}
        self.used = sorted(summed_features | self.cells.keys())
        self.ends = {j: self._ends(j) for j in sorted(summed_features)}
        self.numeric = all(c.numeric for c in cells)

    def _ends(self, j: int) -> tuple[float, ...]:
        """Return the range of a feature in a linear condition."""
        if self.domain is not None:
            return self.domain.lower[j], self.domain.upper[j]
        column = self.table.numbers(j, slice(None))
        column = column[np.isfinite(column)]
        return (float(column.min()), float(column.max())) if len(column) else ()

    def _choices(self, j: int, row: int, values: dict[int, object]) -> list[object]:
        """Return the values to which a feature of a row may change."""
        choices: list[object] = []
        if j in self.cells:
            cell, located = self.cells[j]
            row_cells = located[row]
            choices += [
                v for k, v in enumerate(cell.values) if cell.reachable[k] and k != row_cells
            ]
        if j in self.ends:
            bounds = self.ends[j]
            choices += bounds
            for bound in self._crossings(j, values):
                # Just beyond the bound on either side, and on it.
                for value in (
                    math.nextafter(bound, -math.inf),
                    bound,
                    math.nextafter(bound, math.inf),
                ):
                    if self.domain is None or bounds[0] <= value <= bounds[1]:
                        choices.append(value)
        return [value for value in dict.fromkeys(choices) if value != values[j]]

    def _crossings(self, j: int, values: dict[int, Any]) -> Iterator[float]:
        """Yield the values of a feature at which linear conditions reach their bounds."""
        for condition in self.linear:
            terms = dict(condition.terms)
            if j not in terms or any(not _is_number(values[f]) for f in terms if f != j):
                continue
            other_terms = math.fsum(c * float(values[f]) for f, c in terms.items() if f != j)
            for bound in (condition.lower, condition.upper):
                crossing = (bound - other_terms) / terms[j]
                if math.isfinite(crossing):
                    yield crossing

    def flips(self, row: int, max_steps: int) -> _FlipResult:
        """Find the flip sets of a row; features are numbered by their index in `used`."""
        values = {j: python_value(self.table.column(j)[row]) for j in self.used}
        values = {j: None if pd.isna(v) else v for j, v in values.items()}
        choices = [self._choices(j, row, values) for j in self.used]
        # A column of strings may only have conditions on missing values.
        numeric = self.numeric and all(v is None or _is_number(v) for v in values.values())

        def rows(changes: list[dict[int, int]]) -> RowTable:
            shape = len(changes), self.ruleset.n_features
            filled = np.full(shape, np.nan, dtype=float if numeric else object)
            for j in self.used:
                filled[:, j] = math.nan if values[j] is None else values[j]
            for tried, change in zip(filled, changes, strict=True):
                for at, option in change.items():
                    tried[self.used[at]] = choices[at][option]
            return RowTable(filled, self.ruleset.feature_names)

        changed = self._comparison(rows([{}]))
        return _flips_by_trial(
            [range(len(c)) for c in choices], lambda changes: changed(rows(changes)), max_steps
        )

    def _comparison(self, now: RowTable) -> Callable[[RowTable], np.ndarray]:
        """Return a function that marks rows whose prediction differs from that for `now`."""
        if self.ruleset.voting is None:
            rule_of: Callable[[RowTable], np.ndarray] = self.ruleset.assign
            if self.by == "prediction":
                rule_of = partial(assigned_rule, self.ruleset)
            other = self.differ(int(rule_of(now)[0]))
            return lambda table: other[rule_of(table)]
        [covered], [as_it_is] = self._votes(now)

        def changed(table: RowTable) -> np.ndarray:
            has_rule, y_pred = self._votes(table)
            if self.ruleset.task == "classification":
                differs = np.array([label != as_it_is for label in y_pred.tolist()], dtype=bool)
            else:
                slack = max(self.tolerance, _ROUNDING * abs(as_it_is))
                both_nan = np.isnan(y_pred) & np.isnan(as_it_is)
                differs = ~((np.abs(y_pred - as_it_is) <= slack) | both_nan)
            if self.ruleset.fallback is None:
                differs = np.where(has_rule & covered, differs, has_rule != covered)
            return np.asarray(differs)

        return changed

    def _votes(self, table: RowTable) -> tuple[np.ndarray, np.ndarray]:
        """Return whether any rule covers each row, and the combined prediction of these rules."""
        covered = self.ruleset.covers(table)
        predicted = np.flatnonzero(covered | (self.ruleset.fallback is not None))
        kind = float if self.ruleset.task == "regression" else object
        y_pred = np.full(len(table), np.nan if kind is float else None, dtype=kind)
        if len(predicted) == len(table):
            y_pred[:] = self.ruleset.predict(table)
        elif len(predicted):
            columns = [table.column(j)[predicted] for j in range(self.ruleset.n_features)]
            part = RowTable(np.column_stack(columns), self.ruleset.feature_names)
            y_pred[predicted] = self.ruleset.predict(part)
        return covered, y_pred


def _is_number(value: object) -> bool:
    return value is not None and not isinstance(value, str)


@dataclass(frozen=True, eq=False, repr=False)
class RuleAttribution(Attribution):
    """Result of :func:`rule_attribution`: an :class:`Attribution` with flip sets.

    Parameters
    ----------
    flip_sets : tuple of tuples of tuples of int
        Minimal flip sets that were found for each row, the smallest first.
    exact : bool
        Whether the search covers all changes of predictions. False for rules with conditions on
        several features, weights that depend on the row, and predictions by the nearest box,
        because the tested values may not include all changes there.

    Notes
    -----
    `witnesses` has for every row and feature the other features of its smallest flip set, or None;
    `queries` counts the tested changes; `resolved` marks exact values; `upper` are upper bounds;
    `exhausted` marks rows whose search was stopped.
    """

    flip_sets: tuple[tuple[FlipSet, ...], ...] = ()
    exact: bool = True


def rule_attribution(
    ruleset: RuleSet,
    X: Any,
    *,
    by: str = "prediction",
    tolerance: float = 0.0,
    beyond_domain: bool = False,
    max_steps: int = 20_000,
) -> RuleAttribution:
    """Compute the responsibility of features for the rules' prediction of each row.

    Use it to explain one prediction of a rule set in the same way as other explainers do, or to
    compare rules with the black box locally (:func:`local_faithfulness`).

    Parameters
    ----------
    ruleset : RuleSet
        Rules that predict.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows to explain.
    by : {"prediction", "rule"}, default="prediction"
        What must change: the prediction (a class or a number; for a linear output, the function),
        or the rule that determines it.
    tolerance : float, default=0.0
        Regression: numbers differ if their difference is larger. If positive, rules must predict
        constants.
    beyond_domain : bool, default=False
        Whether features may move out of the domain of the rules, if it is known. Often no rule
        covers the region outside, so every feature would be responsible.
    max_steps : int, default=20000
        Maximum number of changes tested per row; `resolved` is False for values that remain
        uncertain.

    Returns
    -------
    RuleAttribution
        An :class:`Attribution` with `values` of shape (n_rows, n_features), `witnesses`,
        `resolved` and `upper`, and all minimal `flip_sets` of each row.

    Raises
    ------
    ValueError
        If a parameter is out of range, or rows do not fit the rules.

    Notes
    -----
    The thresholds and lists of the rules divide every feature into cells: each threshold, each
    interval between thresholds, each listed or known category, and all other categories together. A
    set of features is a *flip set* of a row if moving exactly those features, each to some other
    cell, changes the prediction; it is minimal if no proper subset is one. The degree of
    responsibility of a feature is one over the size of its smallest minimal flip set, and 0 if it
    is in none. With two cells per feature this is the responsibility of Boolean variables (Chockler
    and Halpern 2004).

    Uncovered rows also have a prediction, by the fallback, or a separate value if the fallback
    abstains or does not exist. Missing values satisfy only conditions that mention them; a missing
    value may become observed, but not the other way around. If a single rule predicts each row and
    premises consist of conditions on one feature and counts (M-of-N), values are exact: the search
    follows the premises of rules with other predictions instead of testing rows. Otherwise (votes,
    linear conditions, nearest boxes) it tests changes of one feature, of two, and so on. This takes
    up to some tenths of a second per row, and values of forests with many thresholds may remain
    uncertain. Linear conditions are tested at their bounds and at the bounds of the domain, or of
    the rows.

    A change within a cell never counts, so a feature that only a linear output uses has value 0.

    Examples
    --------
    >>> from skescore.attribution import rule_attribution
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa"),
    ...      Rule([Interval(0, upper=5), Interval(1, upper=1.7)], "versicolor")],
    ...     ["length", "width", "color"],
    ...     task="classification",
    ...     fallback=Fallback("virginica"),
    ... )
    >>> result = rule_attribution(rules, [[1.4, 0.2, 0], [4.0, 1.3, 0], [6.0, 2.3, 0]])
    >>> result.values.tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    >>> rule_attribution(rules, [[6.0, 2.3, 0]], by="rule").flip_sets
    (((0,),),)
    """
    check_choice("by", by, ("prediction", "rule"))
    tolerance = check_number("tolerance", tolerance, 0, finite=True)
    max_steps = check_integer("max_steps", max_steps, 1)
    check_flag("beyond_domain", beyond_domain)
    if by == "rule":
        ruleset.check_one_rule_per_row("rule_attribution(by='rule')")
    table = RowTable(X, ruleset.feature_names)
    differ = _Differences(ruleset, by, tolerance)
    cells = _feature_cells(ruleset, beyond_domain=beyond_domain)
    written = _premises(ruleset, cells)
    if written is not None and (by == "rule" or not _by_nearest_box(ruleset)):
        used = [cell.feature for cell in cells]
        located = np.array([cell.locate(table) for cell in cells], dtype=np.intp)
        allowed = [_as_bits(cell.reachable) for cell in cells]
        search = _PremiseSearch(written, allowed, differ.of, max_steps)
        different, row_groups = np.unique(located.T, axis=0, return_inverse=True)
        if not cells:  # no condition distinguishes rows
            different, row_groups = (
                np.zeros((1, 0), dtype=np.intp),
                np.zeros(len(table), dtype=np.intp),
            )
        results = [search.find(row) for row in different.tolist()]
        flips, exact = [results[k] for k in row_groups.reshape(-1)], True
    else:
        trials = _RowTrials(
            ruleset,
            table,
            cells,
            differ.of,
            by=by,
            tolerance=tolerance,
            beyond_domain=beyond_domain,
        )
        used, flips = trials.used, [trials.flips(row, max_steps) for row in range(len(table))]
        nearest = by == "prediction" and _by_nearest_box(ruleset)
        exact = not (nearest or trials.linear or _affine_votes(ruleset))
    return _attribution(ruleset, used, flips, exact)


class _Differences:
    """Rules whose predictions differ from a given rule's prediction."""

    def __init__(self, ruleset: RuleSet, by: str, tolerance: float) -> None:
        self.tolerance = tolerance
        fallback = ruleset.fallback
        outputs: list[Any] = [
            rule.output.intercept
            if isinstance(rule.output, LinearOutput) and not rule.output.terms
            else rule.output
            for rule in ruleset.rules
        ]
        affine = [k for k, output in enumerate(outputs) if isinstance(output, LinearOutput)]
        if affine and tolerance > 0 and by == "prediction" and ruleset.voting is None:
            raise ValueError(
                f"tolerance={tolerance!r} compares numbers, but rule {affine[0]} predicts a linear "
                "function. Pass tolerance=0: then, different functions are different predictions."
            )
        by_default = fallback is not None and fallback.policy == "default"
        outputs.append(fallback.output if fallback is not None and by_default else None)
        if by == "rule":
            self.keys, self.numbers = np.arange(len(outputs)), None
            return
        codes: dict[Any, int] = {}
        self.keys = np.array([codes.setdefault(output, len(codes)) for output in outputs])
        self.numbers = None
        if ruleset.task == "regression" and tolerance > 0:
            # Missing predictions and linear functions differ from every number.
            plain = [isinstance(output, int | float) for output in outputs]
            self.numbers = np.array(
                [o if p else math.nan for o, p in zip(outputs, plain, strict=True)], dtype=float
            )

    def of(self, index: int) -> np.ndarray:
        """Return which rules have a different prediction; the last entry is for no rule (-1)."""
        differs = self.keys != self.keys[index]
        if self.numbers is not None:
            differs &= ~(np.abs(self.numbers - self.numbers[index]) <= self.tolerance)
        return differs


def _attribution(
    ruleset: RuleSet, used: Sequence[int], flips: Sequence[_FlipResult], exact: bool
) -> RuleAttribution:
    """Return values and witnesses from flip sets, whose features are indices into `used`."""
    shape = len(flips), ruleset.n_features
    values, upper = np.zeros(shape), np.zeros(shape)
    resolved = np.ones(shape, dtype=bool)
    witnesses, flip_sets = [], []
    for row, flip_result in enumerate(flips):
        witness: list[FlipSet | None] = [None] * ruleset.n_features
        sets = tuple(tuple(used[at] for at in flip_set) for flip_set in flip_result.sets)
        for flip_set in sets:  # ordered by size, so the first set of a feature is the smallest
            for j in flip_set:
                if witness[j] is None:
                    witness[j] = tuple(other for other in flip_set if other != j)
                    values[row, j] = upper[row, j] = 1 / len(flip_set)
        open_features = [j for j in used if witness[j] is None]
        if flip_result.complete_below is not None and open_features:
            resolved[row, open_features] = False
            upper[row, open_features] = 1 / max(1, flip_result.complete_below)
        if not exact:
            # A missed flip set may be smaller than the sets found; only single changes are certain.
            unsure = [j for j in used if values[row, j] < 1]
            resolved[row, unsure] = False
            upper[row, unsure] = 1.0
        witnesses.append(tuple(witness))
        flip_sets.append(sets)
    return RuleAttribution(
        values=values,
        feature_names=ruleset.feature_names,
        queries=np.array([flip_result.steps for flip_result in flips], dtype=np.int64),
        n_model_rows=0,
        witnesses=tuple(witnesses),
        resolved=resolved,
        upper=upper,
        exhausted=np.array([f.complete_below is not None for f in flips], dtype=bool),
        masking="rules",
        flip_sets=tuple(flip_sets),
        exact=exact,
    )


def local_faithfulness(
    ruleset: RuleSet,
    black_box: Any,
    X: Any,
    *,
    removal: Any = "median",
    reference: Any = None,
    uncovered: str = "ignore",
    **options: Any,
) -> dict[str, np.ndarray]:
    """Measure whether the black box depends on the features that decide the rules' predictions.

    Use it in addition to fidelity: rules may agree with the black box for other reasons.

    Parameters
    ----------
    ruleset : RuleSet
        Rules that predict.
    black_box : classifier, regressor or callable
        Model that the rules describe, as in :func:`skescore.metrics.attribution.faithfulness`.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows that both can predict.
    removal : float, array-like, DataFrame, str or Removal, default="median"
        Replacement of a removed feature: a number, one for each feature, ``"mean"``, ``"median"``
        or ``"mode"`` of `reference`, or rows of a background sample; see
        :class:`skescore.metrics.attribution.Removal`.
    reference : array-like or DataFrame, optional
        Rows from which named replacements are computed; by default `X`.
    uncovered : {"ignore", "explain"}, default="ignore"
        Treatment of uncovered rows. ``"ignore"``: the measures are NaN. ``"explain"``: the
        explanation consists of the features whose change leads to the prediction of a rule.
    **options
        Further options of `faithfulness`, such as ``measures`` and ``max_batch``.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        By default comprehensiveness (decrease of the black box's prediction without these features;
        greater is better), sufficiency (decrease with these features only; smaller is better) and
        the rank correlation with the effect of omitting each feature. NaN if undefined.

    Raises
    ------
    ValueError
        If `uncovered` is none of the options.

    Notes
    -----
    The measures are for the class that the black box predicts, with the responsibilities of
    :func:`rule_attribution` as the explanation. A row whose prediction depends on no feature (one
    rule for everything) has comprehensiveness 0 and sufficiency 1, the worst values. In regression,
    its sufficiency is NaN.

    Examples
    --------
    Rules that depend on the relevant feature, and rules that depend on another:

    >>> import numpy as np
    >>> from skescore.attribution import local_faithfulness
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> def black_box(X):
    ...     yes = X[:, 0] > 0.5
    ...     return np.column_stack([~yes, yes]).astype(float)
    >>> X = np.array([[0.9, 0.9], [0.8, 0.7], [0.1, 0.2]])
    >>> def split(feature):
    ...     premises = [Interval(feature, upper=0.5)], [Interval(feature, lower=0.5)]
    ...     rules = [Rule(premise, label) for label, premise in enumerate(premises)]
    ...     return RuleSet(rules, ["a", "b"], task="classification")
    >>> for rules in (split(0), split(1)):
    ...     measures = local_faithfulness(rules, black_box, X, removal=X.min(axis=0))
    ...     print(measures["aopc_compr"].tolist(), measures["aopc_suff"].tolist())
    [1.0, 1.0, 0.0] [0.0, 0.0, 0.0]
    [0.0, 0.0, 0.0] [1.0, 1.0, 0.0]

    As a scorer of extractors for scikit-learn's searches:

    >>> def faithful(extractor, X, y=None):
    ...     measures = local_faithfulness(extractor.rules_, extractor.estimator_, X)
    ...     return float(np.nanmean(measures["aopc_compr"]))
    """
    check_choice("uncovered", uncovered, ("ignore", "explain"))
    if reference is None and isinstance(removal, str):
        reference = X
    if not isinstance(removal, Removal):
        removal = Removal(removal, reference=reference)
    scores = faithfulness(black_box, X, rule_attribution(ruleset, X), removal=removal, **options)
    if uncovered == "ignore":
        measures = scores[0] if isinstance(scores, tuple) else scores
        for values in measures.values():
            values[~ruleset.covers(X)] = np.nan
    return cast("dict[str, np.ndarray]", scores)
