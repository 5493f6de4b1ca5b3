"""Exact search for a premise with enough rows in total and enough rows of one class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from skescore.constraints._constraints import Constraints
from skescore.constraints._labeled_rows import LabeledRows
from skescore.constraints._rewriting import groups_hold
from skescore.rules import Condition, Interval, Missing, OneOf, Rule

#: Largest and smallest limit on the number of premises that a search examines; in between, the
#: number of rows times premises is limited.
_MAX_NODES, _MIN_NODES, _MAX_WORK = 40_000, 4_000, 8_000_000
#: Maximum number of categories for which all subsets are considered.
_MAX_CATEGORIES = 8


class SearchLimitError(Exception):
    """Error for a search that was stopped without a result."""


@dataclass
class BoxProblem:
    """A class, and the premises that may predict it.

    Parameters
    ----------
    label : label
        The class.
    remaining : ndarray of bool
        Rows that no earlier rule decides.
    needed : tuple of int
        Features that the premise has to use.
    max_conditions : float
        Largest number of conditions.
    smallest : int
        Smallest number of rows, if the constraints do not require more.
    """

    label: Any
    remaining: np.ndarray
    needed: tuple[int, ...] = ()
    max_conditions: float = math.inf
    smallest: int = 1


class PreciseBoxSearch:
    """Branch-and-bound search for a precise premise with enough rows.

    Parameters
    ----------
    rows : LabeledRows
        Rows with labels.
    constraints : Constraints
        Support, precision, usable features, thresholds and categories.

    Notes
    -----
    In each node a row of another class is either kept, or excluded by the weakest condition of each
    feature and side. A node is pruned if it has too few rows of the class for the smallest support,
    or too many kept rows of other classes for the precision.
    """

    def __init__(self, rows: LabeledRows, constraints: Constraints) -> None:
        self.rows = rows
        self.constraints = constraints
        self.least_support = max(1, constraints.smallest_support(len(rows)))
        self.precision = constraints.min_precision or 0.0
        names = rows.names
        self.usable = [j for j, name in enumerate(names) if name not in constraints.forbidden]
        self._chains: dict[int, list[_Chain]] = {}
        self.n_nodes = 0
        self.max_nodes = int(np.clip(_MAX_WORK // max(1, len(rows)), _MIN_NODES, _MAX_NODES))

    def find(self, problem: BoxProblem) -> Rule | None:
        """Return a rule of the class, or None if it is proven that there is none.

        Raises
        ------
        SearchLimitError
            If the limit of nodes is reached.
        """
        assert self.rows.classes is not None
        code = self.rows.classes.index(problem.label)
        if len(problem.needed) > problem.max_conditions or not self.is_affordable(problem.needed):
            return None
        self.is_label = self.rows.codes == code
        self.smallest = max(self.least_support, problem.smallest)
        self.n_nodes = 0
        for start in self._starts(list(problem.needed)):
            mask = problem.remaining & self.rows.mask(start)
            kept_rows = np.zeros(len(mask), dtype=bool)
            conditions = self._search(list(start), mask, kept_rows, problem)
            if conditions is not None:
                return Rule(tuple(conditions), problem.label)
        return None

    def is_affordable(self, features: Sequence[int]) -> bool:
        """Return whether rules may use these features together."""
        constraints, names = self.constraints, self.rows.names
        limit = constraints.max_features
        return (
            set(features) <= set(self.usable)
            and constraints.affords(names[f] for f in set(features))
            and (not isinstance(limit, int) or len(set(features)) <= limit)
        )

    def _starts(self, needed: list[int]) -> Iterator[tuple[Condition, ...]]:
        """Yield premises that use the needed features and exclude as little as possible."""
        if not needed:
            yield ()
            return
        feature, others = needed[0], needed[1:]
        for condition in self._weakest(feature):
            for start in self._starts(others):
                yield (condition, *start)

    def _weakest(self, feature: int) -> list[Condition]:
        """Return the conditions on a feature that no other condition covers completely."""
        weakest = [chain.widest for chain in self.chains(feature)]
        weakest.sort(key=lambda pair: -int(pair[1].sum()))
        return [condition for condition, _ in _undominated(weakest)]

    def _search(
        self,
        conditions: list[Condition],
        mask: np.ndarray,
        kept_rows: np.ndarray,
        problem: BoxProblem,
    ) -> list[Condition] | None:
        self.n_nodes += 1
        if self.n_nodes > self.max_nodes:
            raise SearchLimitError
        n_label = int((mask & self.is_label).sum())
        n_kept = int((kept_rows & mask).sum())
        if mask.sum() < self.smallest or n_label < self.precision * self.smallest - 1e-9:
            return None
        if n_label / max(1, n_label + n_kept) < self.precision:
            return None
        if n_label / int(mask.sum()) >= self.precision:
            return conditions
        others = np.flatnonzero(mask & ~self.is_label & ~kept_rows)
        row = int(others[len(others) // 2])
        for condition, part in self._exclusions(row, conditions, mask, problem):
            try:
                longer = list(Rule((*conditions, condition), 0).conditions)
            except ValueError:
                continue
            result = self._search(longer, part, kept_rows, problem)
            if result is not None:
                return result
        further = kept_rows.copy()
        further[row] = True
        return self._search(conditions, mask, further, problem)

    def _exclusions(
        self, row: int, conditions: Sequence[Condition], mask: np.ndarray, problem: BoxProblem
    ) -> list[tuple[Condition, np.ndarray]]:
        """Return the weakest further conditions that exclude a row, the most precise first."""
        tested = {f for condition in conditions for f in condition.features}
        options: list[tuple[Condition, np.ndarray]] = []
        for feature in self.usable:
            used = {*tested, feature}
            if len(used) > problem.max_conditions or not self.is_affordable(
                [*used, *problem.needed]
            ):
                continue
            weakest = [chain.widest_without(row) for chain in self.chains(feature)]
            parts = [(pair[0], mask & pair[1]) for pair in weakest if pair is not None]
            parts.sort(key=lambda pair: -int(pair[1].sum()))
            options += _undominated(parts)
        options.sort(key=lambda pair: -float(self.is_label[pair[1]].mean() if pair[1].any() else 0))
        return options

    def chains(self, feature: int) -> list[_Chain]:
        """Return all allowed conditions on a feature, as chains of nested conditions.

        Raises
        ------
        SearchLimitError
            If the feature has too many categories.
        """
        if feature not in self._chains:
            singles: Iterator[Condition] = iter(())
            nested: list[list[Condition]] = []
            if self.rows.is_categorical(feature):
                singles = self._category_atoms(feature)
            else:
                nested = self._number_atoms(feature)
            nested += [[c] for c in (*singles, Missing(feature), Missing(feature, negated=True))]
            self._chains[feature] = [
                _Chain(conditions, np.array([self.rows.mask([c]) for c in conditions]))
                for conditions in nested
                if conditions
            ]
        return self._chains[feature]

    def _category_atoms(self, feature: int) -> Iterator[Condition]:
        values = self.rows.domain.values_of(feature) or ()
        if len(values) > _MAX_CATEGORIES:
            raise SearchLimitError
        name = self.rows.names[feature]
        together = self.constraints.together.get(name, ())
        apart = self.constraints.apart.get(name, ())
        for size in range(1, len(values) + 1):
            for chosen in combinations(values, size):
                for missing in self._missing_flags(feature):
                    condition = OneOf(feature, chosen, missing=missing)
                    if groups_hold(condition, together, apart):
                        yield condition

    def _missing_flags(self, feature: int) -> tuple[bool, ...]:
        is_missing = self.rows.table.missing(feature, slice(0, len(self.rows)))
        return (False, True) if is_missing.any() else (False,)

    def _number_atoms(self, feature: int) -> list[list[Condition]]:
        """Return upper and lower bounds of a feature, from the narrowest to the widest."""
        allowed = self.constraints.allowed_thresholds(self.rows.names[feature])
        values = np.unique(self.rows.column(feature)).tolist()
        bounds: list[tuple[float, bool]] = []
        for low, high in pairwise(values):
            bound = low / 2 + high / 2
            if allowed is not None:
                bound = max((t for t in allowed.near(high) if t <= high), default=-math.inf)
            if low <= bound <= high:
                bounds.append((bound, bound == high))
        chains: list[list[Condition]] = []
        for missing in self._missing_flags(feature):
            chains.append(
                [
                    Interval(feature, upper=b, upper_closed=not is_open, missing=missing)
                    for b, is_open in bounds
                ]
            )
            chains.append(
                [
                    Interval(feature, lower=b, lower_closed=is_open, missing=missing)
                    for b, is_open in reversed(bounds)
                ]
            )
        return chains


@dataclass(eq=False)
class _Chain:
    """Nested conditions on a feature: each covers all rows of the previous condition."""

    conditions: list[Condition]
    masks: np.ndarray

    @property
    def widest(self) -> tuple[Condition, np.ndarray]:
        """The last condition with its rows."""
        return self.conditions[-1], self.masks[-1]

    def widest_without(self, row: int) -> tuple[Condition, np.ndarray] | None:
        """Return the widest condition that excludes a row, with its rows; None if none does."""
        n_excluding = int((~self.masks[:, row]).sum())
        if not n_excluding:
            return None
        return self.conditions[n_excluding - 1], self.masks[n_excluding - 1]


def _undominated(
    options: list[tuple[Condition, np.ndarray]],
) -> list[tuple[Condition, np.ndarray]]:
    """Return the conditions, widest first, whose rows no wider condition includes."""
    result: list[tuple[Condition, np.ndarray]] = []
    for condition, mask in options:
        if not any((mask <= other).all() for _, other in result):
            result.append((condition, mask))
    return result
