"""Changes of a row tried one by one, for rules whose premises are no sets of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skescore._validation import python_value
from skescore.attribution._rule_cells import FeatureCells
from skescore.attribution._rule_flips import Flips, flips_by_trial
from skescore.rules import AtLeast, Linear, LinearOutput, RuleSet
from skescore.rules._answers import _answering_rule
from skescore.rules._columns import Table
from skescore.rules._conditions import Condition

#: Votes of numbers that round differently are the same answer.
_ROUNDING = 1e-9


def linear_conditions(conditions: tuple[Condition, ...]) -> Iterator[Linear]:
    """The conditions that weigh several features, wherever they stand."""
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from linear_conditions(condition.conditions)
        elif isinstance(condition, Linear):
            yield condition


def affine_votes(ruleset: RuleSet) -> list[LinearOutput]:
    """Outputs and weights that depend on the row, in rules that answer together."""
    if ruleset.voting is None:
        return []
    parts = [part for rule in ruleset.rules for part in (rule.output, rule.weight)]
    return [part for part in parts if isinstance(part, LinearOutput) and part.terms]


def by_nearest_box(ruleset: RuleSet) -> bool:
    """Whether rows without a rule are answered by their distance to the rules."""
    return ruleset.fallback is not None and ruleset.fallback.policy == "nearest"


class RowTrials:
    """Tries changes of rows.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    table : Table
        The rows.
    cells : list of FeatureCells
        The cells of the features that conditions on one feature look at.
    differ : callable
        Gives for a rule which rules' answers are others; the last is no rule.
    by, tolerance, beyond_domain
        As in :func:`rule_attribution`.
    """

    def __init__(
        self,
        ruleset: RuleSet,
        table: Table,
        cells: list[FeatureCells],
        differ: Callable[[int], np.ndarray],
        *,
        by: str,
        tolerance: float,
        beyond_domain: bool,
    ) -> None:
        self.ruleset, self.table, self.differ = ruleset, table, differ
        self.by, self.tolerance = by, tolerance
        self.domain = None if beyond_domain else ruleset.domain
        self.linear = [c for rule in ruleset.rules for c in linear_conditions(rule.conditions)]
        summed = {f for condition in self.linear for f in condition.features}
        summed |= {f for part in affine_votes(ruleset) for f, _ in part.terms}
        self.cells = {cell.feature: (cell, cell.locate(table)) for cell in cells}
        self.used = sorted(summed | self.cells.keys())
        self.ends = {j: self._ends(j) for j in sorted(summed)}
        self.numeric = all(c.numeric for c in cells)

    def _ends(self, j: int) -> tuple[float, ...]:
        """How far a feature of a sum may go."""
        if self.domain is not None:
            return self.domain.lower[j], self.domain.upper[j]
        column = self.table.numbers(j, slice(None))
        column = column[np.isfinite(column)]
        return (float(column.min()), float(column.max())) if len(column) else ()

    def _choices(self, j: int, row: int, values: dict[int, object]) -> list[object]:
        """What a feature of a row may change to."""
        choices: list[object] = []
        if j in self.cells:
            cell, located = self.cells[j]
            here = located[row]
            choices += [v for k, v in enumerate(cell.values) if cell.reachable[k] and k != here]
        if j in self.ends:
            reach = self.ends[j]
            choices += reach
            for bound in self._crossings(j, values):
                # Just beyond the bound on either side, and on it.
                for value in (math.nextafter(bound, -math.inf), bound,
                              math.nextafter(bound, math.inf)):  # fmt: skip
                    if self.domain is None or reach[0] <= value <= reach[1]:
                        choices.append(value)
        return [value for value in dict.fromkeys(choices) if value != values[j]]

    def _crossings(self, j: int, values: dict[int, Any]) -> Iterator[float]:
        """Where a feature takes sums to their bounds, the others as they are."""
        for condition in self.linear:
            terms = dict(condition.terms)
            if j not in terms or any(not _is_number(values[f]) for f in terms if f != j):
                continue
            rest = math.fsum(c * float(values[f]) for f, c in terms.items() if f != j)
            for bound in (condition.lower, condition.upper):
                crossing = (bound - rest) / terms[j]
                if math.isfinite(crossing):
                    yield crossing

    def flips(self, row: int, max_steps: int) -> Flips:
        """Find the flip sets of a row; features are numbered by their place in `used`."""
        values = {j: python_value(self.table.column(j)[row]) for j in self.used}
        values = {j: None if v is None or v != v else v for j, v in values.items()}
        choices = [self._choices(j, row, values) for j in self.used]

        def rows(changes: list[dict[int, int]]) -> Table:
            shape = len(changes), self.ruleset.n_features
            filled = np.full(shape, np.nan, dtype=float if self.numeric else object)
            for j in self.used:
                filled[:, j] = math.nan if values[j] is None else values[j]
            for place, change in zip(filled, changes, strict=True):
                for at, option in change.items():
                    place[self.used[at]] = choices[at][option]
            return Table(filled, self.ruleset.feature_names)

        changed = self._comparison(rows([{}]))
        return flips_by_trial(
            [range(len(c)) for c in choices], lambda changes: changed(rows(changes)), max_steps
        )

    def _comparison(self, now: Table) -> Callable[[Table], np.ndarray]:
        """What tells whether rows get another answer than a row gets now."""
        if self.ruleset.voting is None:
            ask: Callable[[Table], np.ndarray] = self.ruleset.assign
            if self.by == "answer":
                ask = lambda table: _answering_rule(self.ruleset, table)  # noqa: E731
            other = self.differ(int(ask(now)[0]))
            return lambda table: other[ask(table)]
        [covered], [answer] = self._votes(now)

        def changed(table: Table) -> np.ndarray:
            has_rule, said = self._votes(table)
            if self.ruleset.task == "classification":
                differs = np.array([label != answer for label in said.tolist()], dtype=bool)
            else:
                slack = max(self.tolerance, _ROUNDING * abs(answer))
                differs = ~((np.abs(said - answer) <= slack) | (np.isnan(said) & np.isnan(answer)))
            if self.ruleset.fallback is None:
                differs = np.where(has_rule & covered, differs, has_rule != covered)
            return np.asarray(differs)

        return changed

    def _votes(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Whether rules hold, and what they say together."""
        covered = self.ruleset.covers(table)
        asked = np.flatnonzero(covered | (self.ruleset.fallback is not None))
        kind = float if self.ruleset.task == "regression" else object
        said = np.full(len(table), np.nan if kind is float else None, dtype=kind)
        if len(asked):
            part = table if len(asked) == len(table) else _rows_of(table, asked, self.ruleset)
            said[asked] = self.ruleset.predict(part)
        return covered, said


def _rows_of(table: Table, rows: np.ndarray, ruleset: RuleSet) -> Table:
    columns = [table.column(j)[rows] for j in range(ruleset.n_features)]
    return Table(np.column_stack(columns), ruleset.feature_names)


def _is_number(value: object) -> bool:
    return value is not None and not isinstance(value, str)
