"""Suggestions: the smallest changes that restore most of the agreement lost by edits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore._text import percentage
from skescore._validation import check_integer, check_number
from skescore.constraints import Constraints, violations
from skescore.editing._edits import apply_edit, rule_to_json
from skescore.editing._effect import predict_rows
from skescore.editing._log import describe_edit
from skescore.metrics import labels_of_rules
from skescore.optimal import Cuts, candidate_cuts
from skescore.rules import Condition, LinearOutput, RowTable, Rule, RuleSet

#: Number of candidate positions of a bound, and of cuts of a feature in new rules.
_N_POSITIONS, _N_CUTS = 16, 8
#: Maximum number of new rules that are tried.
_N_NEW_RULES = 20


@dataclass(frozen=True, eq=False)
class Suggestion:
    """A single edit that restores most of the lost agreement.

    Parameters
    ----------
    edit : mapping
        The edit as JSON, for :meth:`RuleEditor.apply`.
    text : str
        Description of the edit.
    restored : float
        Share of the lost agreement that the edit restores; above 1 if it gains more than was lost.
    n_rows_changed : int
        Number of rows whose prediction changes: the cost of the edit.
    n_added : int, default=0
        Number of rules that it adds.
    """

    edit: Mapping[str, Any]
    text: str
    restored: float
    n_rows_changed: int
    n_added: int = 0

    def sort_key(self) -> tuple[Any, ...]:
        """Return the sort key of suggestions: fewest rows, fewest rules, most restored."""
        return self.n_rows_changed, self.n_added, -self.restored, self.text

    def __str__(self) -> str:
        return (
            f"{self.text}: restores {percentage(self.restored)} of the loss, decides "
            f"{self.n_rows_changed} rows differently"
        )


def suggest(
    before: RuleSet,
    after: RuleSet,
    X: Any,
    labels: np.ndarray,
    *,
    share: float = 0.9,
    limit: int = 5,
    constraints: Constraints | None = None,
    pinned: Sequence[int] = (),
) -> list[Suggestion]:
    """List the cheapest single edits that restore a share of the lost agreement.

    Parameters
    ----------
    before, after : RuleSet
        The rules before and after the edits.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : ndarray of shape (n_rows,)
        Labels or numbers that the rules should predict.
    share : float, default=0.9
        Share of the lost agreement that each edit must restore.
    limit : int, default=5
        Largest number of suggestions.
    constraints : Constraints, optional
        Constraints on the rules: edits that add violations are excluded, and new rules use no
        forbidden feature.
    pinned : sequence of int, default=()
        Indices of rules that must not be changed.

    Returns
    -------
    list of Suggestion
        Suggestions by increasing number of rows whose prediction changes. Empty if nothing was
        lost, or no single edit restores enough.

    Notes
    -----
    The search tries to change one output or the fallback, to move one bound to one of 16 values of
    the feature or to a bound before the edits, to remove one bound or one rule, and to add one of
    the best rules with up to two conditions at the top of a list. Edits that leave further rows
    without a prediction are excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.editing import suggest
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=18)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> edited = rules.replace(rules=[Rule([Interval(0, upper=40)], "no"), rules[1]])
    >>> X = [[10], [18], [20], [30], [50]]
    >>> for suggestion in suggest(rules, edited, X, rules.predict(X), limit=1):
    ...     print(suggestion)
    set age ≤ 18 in rule 1: restores 100 % of the loss, decides 2 rows differently
    """
    share = check_number("share", share, above=0)
    check_integer("limit", limit, 1)
    table = RowTable.of(X, after.feature_names)
    labels = labels_of_rules(after, "labels", labels)
    search = _SuggestionSearch(after, X, table, labels, constraints)
    search.add_positions(before)
    lost = search.total_cost(after) - search.total_cost(before)
    if lost <= 1e-12:
        return []
    suggestions: dict[str, Suggestion] = {}
    for edit in search.candidates(pinned):
        suggestion = search.evaluate(edit, lost, share, [after[i] for i in pinned])
        if suggestion is not None:
            suggestions.setdefault(suggestion.text, suggestion)
    return sorted(suggestions.values(), key=Suggestion.sort_key)[:limit]


class _SuggestionSearch:
    """Candidate edits of rules, and the share of the lost agreement that each restores.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    X : array-like
        Rows in the form that constraints read.
    table : RowTable
        The rows.
    labels : ndarray
        Labels or numbers that the rules should predict.
    constraints : Constraints or None
        Constraints on the rules.
    """

    def __init__(
        self,
        rules: RuleSet,
        X: Any,
        table: RowTable,
        labels: np.ndarray,
        constraints: Constraints | None,
    ) -> None:
        self.rules, self.X, self.table, self.labels = rules, X, table, labels
        self.constraints = constraints
        self.predictions, self.has_prediction = predict_rows(rules, table)
        self.positions: dict[int, set[float]] = {}
        self.costs = self._costs(self.predictions)
        self.n_violations = self._count_violations(rules)

    def add_positions(self, rules: RuleSet) -> None:
        """Also try the bounds of other rules, so that moved bounds can move back."""
        for condition in (c for rule in rules for c in rule.intervals):
            bounds = {b for b in (condition.lower, condition.upper) if math.isfinite(b)}
            self.positions.setdefault(condition.feature, set()).update(bounds)

    def _costs(self, predictions: np.ndarray) -> np.ndarray:
        if self.rules.task == "regression":
            numbers = self.labels.astype(float)
            filled = np.where(np.isnan(predictions), numbers.mean(), predictions)
            return np.abs(filled.astype(float) - numbers)
        pairs = zip(predictions, self.labels.tolist(), strict=True)
        return np.array([a != b for a, b in pairs], dtype=float)

    def total_cost(self, rules: RuleSet) -> float:
        """Return the errors of rules, summed over the rows."""
        return float(self._costs(predict_rows(rules, self.table)[0]).sum())

    def _count_violations(self, rules: RuleSet) -> int:
        if not self.constraints:
            return 0
        try:
            return len(violations(rules, self.constraints, self.X, self.labels))
        except ValueError:  # undecidable
            return 0

    def evaluate(
        self, edit: Mapping[str, Any], lost: float, share: float, pinned: Sequence[Rule]
    ) -> Suggestion | None:
        """Evaluate an edit; None if it restores too little or violates a constraint or `pinned`."""
        try:
            edited = apply_edit(self.rules, edit)
        except ValueError:
            return None
        edited_rules = [(rule.conditions, rule.output) for rule in edited]
        if not all((rule.conditions, rule.output) in edited_rules for rule in pinned):
            return None  # a bound that rules share has moved
        predictions, has_prediction = predict_rows(edited, self.table)
        if (self.has_prediction & ~has_prediction).any():
            return None
        restored = float(self.costs.sum() - self._costs(predictions).sum()) / lost
        if restored < share - 1e-12 or self._count_violations(edited) > self.n_violations:
            return None
        if self.rules.task == "regression":
            same = (predictions == self.predictions) | (
                np.isnan(predictions) & np.isnan(self.predictions)
            )
            n_changed = int((~same).sum())
        else:
            pairs = zip(predictions, self.predictions, strict=True)
            n_changed = sum(a != b for a, b in pairs)
        text = describe_edit(edit)
        if "rule" in edit:
            rule = edited[int(edit["number"]) - 1]
            text = f"add rule {edit['number']}: {rule.to_text(edited.feature_names)}"
        return Suggestion(edit, text, restored, n_changed, len(edited) - len(self.rules))

    def candidates(self, pinned: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield all single edits to try, except changes of the pinned rules."""
        for index, rule in enumerate(self.rules):
            if index in pinned:
                continue
            if len(self.rules) > 1:
                yield {"action": "drop", "number": index + 1}
            yield from self._outputs(index, rule)
            yield from self._bounds(index, rule)
        for label in self.rules.classes or ():
            fallback = self.rules.fallback
            if fallback is not None and fallback.output != label:
                yield {"action": "set_fallback", "output": label}
        if self.rules.ordered and 0 not in pinned:
            yield from self._new_rules()

    def _outputs(self, index: int, rule: Rule) -> Iterator[dict[str, Any]]:
        if self.rules.classes is not None:
            for label in self.rules.classes:
                if label != rule.output:
                    yield {"action": "set_output", "number": index + 1, "output": label}
            return
        if self.rules.voting is None and not isinstance(rule.output, LinearOutput):
            assigned = self.rules.assign(self.table) == index
            if assigned.any():
                value = float(np.median(self.labels[assigned].astype(float)))
                yield {"action": "set_output", "number": index + 1, "output": value}

    def _bounds(self, index: int, rule: Rule) -> Iterator[dict[str, Any]]:
        for condition in rule.intervals:
            values = self.table.numbers(condition.feature, slice(None))
            values = np.unique(values[np.isfinite(values)])
            if len(values) > _N_POSITIONS:
                quantiles = np.linspace(0, 1, _N_POSITIONS)
                values = np.unique(np.quantile(values, quantiles, method="nearest"))
            earlier_bounds = self.positions.get(condition.feature, set())
            values = np.unique([*values.tolist(), *earlier_bounds])
            for side in ("lower", "upper"):
                if not math.isfinite(getattr(condition, side)):
                    continue
                closed_flag = {f"{side}_closed": getattr(condition, f"{side}_closed")}
                for value in (*values.tolist(), None):
                    yield {
                        "action": "set_bound",
                        "number": index + 1,
                        "feature": self.rules.feature_names[condition.feature],
                        side: value,
                        **({} if value is None else closed_flag),
                    }

    def _new_rules(self) -> Iterator[dict[str, Any]]:
        """Yield the best rules with up to two conditions at the top of the list."""
        if self.rules.classes is None:
            return
        cuts = self._allowed_cuts()
        tests: list[Condition] = [c for pair in cuts.pairs() for c in pair]
        if not tests:
            return
        holds = np.array([self.table.holds(c) for c in tests], dtype=float)
        for label in self.rules.classes:
            wrong = np.array([value != label for value in self.labels.tolist()], dtype=float)
            gains = (holds * (self.costs - wrong)) @ holds.T
            order = np.argsort(-gains, axis=None, kind="stable")[: 2 * _N_NEW_RULES]
            for flat_index in order.tolist():
                i, j = divmod(flat_index, len(tests))
                if i > j or gains[i, j] <= 0:
                    continue
                try:
                    rule = Rule((tests[i], tests[j]), label)
                except ValueError:
                    continue
                data = rule_to_json(self.rules, rule)
                yield {"action": "add", "rule": data, "number": 1}

    def _allowed_cuts(self) -> Cuts:
        cuts = candidate_cuts(self.table, _N_CUTS)
        forbidden = set() if self.constraints is None else set(self.constraints.forbidden)
        names = self.rules.feature_names
        return cuts.select([j for j in range(len(names)) if names[j] not in forbidden])
