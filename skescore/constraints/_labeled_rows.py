"""Rows with the labels that rules explain, and candidate conditions on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from skescore.constraints._constraints import Constraints
from skescore.constraints._rewriting import groups_hold
from skescore.rules import Condition, Domain, Interval, OneOf, RowTable, Rule, RuleSet

#: Candidate cuts per feature.
_N_CUTS = 9


class LabeledRows:
    """Rows with labels, and the masks of premises on them.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : array-like of shape (n_rows,)
        Labels that the rules explain: classes, or numbers in a regression.
    ruleset : RuleSet
        Rules whose names, classes and domain apply.
    """

    def __init__(self, X: Any, labels: Any, ruleset: RuleSet) -> None:
        self.X = X
        self.names = ruleset.feature_names
        self.classes = ruleset.classes
        self.domain: Domain = ruleset.domain_around(X) if ruleset.domain is None else ruleset.domain
        self.table = RowTable.of(X, self.names)
        self.labels = np.asarray(labels)
        if self.classes is None:
            self.values = self.labels.astype(float)
        else:
            code = {label: i for i, label in enumerate(self.classes)}
            self.codes = np.array([code.get(v, -1) for v in self.labels.tolist()], dtype=int)
        self._masks: dict[tuple[Condition, ...], np.ndarray] = {}
        self._cuts: dict[int, list[Condition]] = {}

    def __len__(self) -> int:
        return len(self.table)

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 in a regression."""
        return 0 if self.classes is None else len(self.classes)

    def mask(self, conditions: Sequence[Condition]) -> np.ndarray:
        """Return a mask of the rows for which all conditions hold."""
        key = tuple(conditions)
        if key not in self._masks:
            self._masks[key] = Rule(key, 0).holds(self.table.column, len(self))
        return self._masks[key]

    def assign(self, rules: Sequence[Rule]) -> np.ndarray:
        """Return the index of the first rule that covers each row, -1 for none."""
        result = np.full(len(self), -1)
        for i in range(len(rules) - 1, -1, -1):
            result[self.mask(rules[i].conditions)] = i
        return result

    def counts(self, mask: np.ndarray) -> np.ndarray:
        """Return the number of rows of each class among some rows."""
        codes = self.codes[mask]
        return np.bincount(codes[codes >= 0], minlength=self.n_classes)

    def best_output(self, mask: np.ndarray, default: Any) -> Any:
        """Return the majority class or the mean of some rows; `default` without rows."""
        if not mask.any():
            return default
        if self.classes is None:
            return float(self.values[mask].mean())
        return self.classes[int(self.counts(mask).argmax())]

    def error(self, mask: np.ndarray, output: Any) -> float:
        """Return the number of wrong labels of some rows, or the sum of squared errors."""
        if self.classes is None:
            if not isinstance(output, int | float):
                return 0.0
            return float(((self.values[mask] - output) ** 2).sum())
        return float((self.codes[mask] != self.classes.index(output)).sum())

    def column(self, feature: int) -> np.ndarray:
        """Return the sorted observed values of a numeric feature."""
        numbers = self.table.numbers(feature, slice(0, len(self)))
        return np.sort(numbers[np.isfinite(numbers)])

    def is_categorical(self, feature: int) -> bool:
        """Return whether a feature has categories."""
        return self.domain.values_of(feature) is not None

    def cuts(self, feature: int, constraints: Constraints) -> list[Condition]:
        """Return candidate conditions on a feature that respect its thresholds and groups."""
        if feature not in self._cuts:
            make = self._category_cuts if self.is_categorical(feature) else self._number_cuts
            self._cuts[feature] = list(dict.fromkeys(make(feature, constraints)))
        return self._cuts[feature]

    def _category_cuts(self, feature: int, constraints: Constraints) -> Iterator[Condition]:
        name = self.names[feature]
        together, apart = constraints.together.get(name, ()), constraints.apart.get(name, ())
        values = self.domain.values_of(feature) or ()
        candidates = [[v] for v in values] + [list(group) for group in together]
        for group in candidates:
            for negated in (False, True):
                condition = OneOf(feature, tuple(group), negated=negated)
                if groups_hold(condition, together, apart):
                    yield condition

    def _number_cuts(self, feature: int, constraints: Constraints) -> Iterator[Condition]:
        values = np.unique(self.column(feature))
        if len(values) < 2:
            return
        name = self.names[feature]
        together, apart = constraints.together.get(name, ()), constraints.apart.get(name, ())
        allowed = constraints.allowed_thresholds(name)
        positions = np.unique(np.linspace(0, len(values) - 2, _N_CUTS).astype(int))
        for i in positions.tolist():
            middle = float(values[i] / 2 + values[i + 1] / 2)
            for bound in (middle,) if allowed is None else allowed.near(middle):
                for condition in (Interval(feature, upper=bound), Interval(feature, lower=bound)):
                    if groups_hold(condition, together, apart):
                        yield condition

    @cached_property
    def overall(self) -> np.ndarray:
        """Mask of all rows."""
        return np.ones(len(self), dtype=bool)

    def peel(
        self,
        conditions: Sequence[Condition],
        remaining: np.ndarray,
        label: Any,
        constraints: Constraints,
        features: Sequence[int],
        n_further: int,
    ) -> list[Condition] | None:
        """Add conditions until a premise is precise enough for a class.

        Parameters
        ----------
        conditions : sequence of conditions
            The premise.
        remaining : ndarray of bool
            Rows that no earlier rule decides.
        label : label
            The class.
        constraints : Constraints
            The smallest support and precision.
        features : sequence of int
            Features that may be used.
        n_further : int
            Largest number of further conditions.

        Returns
        -------
        list of conditions, or None
            None if greedy steps do not reach the precision.
        """
        assert self.classes is not None
        precision = constraints.min_precision or 0.0
        smallest = max(1, constraints.smallest_support(len(self)))
        is_label = self.codes == self.classes.index(label)
        premise = list(conditions)
        mask = self.mask(premise) & remaining
        tested = {f for c in premise for f in c.features}
        while mask.sum() >= smallest:
            if is_label[mask].mean() >= precision:
                return premise
            choices = [
                (float(is_label[part].mean()), int(part.sum()), cut)
                for feature in features
                if n_further > 0 or feature in tested
                for cut in self.cuts(feature, constraints)
                for part in [mask & self.mask([cut])]
                if smallest <= part.sum() < mask.sum()
            ]
            if not choices:
                return None
            cut = max(choices, key=lambda choice: choice[:2])[2]
            n_further -= cut.features[0] not in tested
            tested |= set(cut.features)
            try:
                premise = list(Rule((*premise, cut), label).conditions)
            except ValueError:
                return None
            mask = self.mask(premise) & remaining
        return None
