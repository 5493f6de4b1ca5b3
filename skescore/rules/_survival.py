"""Rules that conclude how long: survival curves in place of labels or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore.rules._ruleset import RuleSet
from skescore.rules._survival_curves import SurvivalCurve, moments_of, read_outcomes
from skescore.rules.importers._as_ruleset import as_ruleset

__all__ = ["SurvivalCurve", "SurvivalRules", "read_outcomes"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Rows whose curves are put together at a time.
_ROWS_PER_BATCH = 8192


@dataclass(frozen=True)
class SurvivalRules:
    """The premises of a rule set, each with the survival curve of its rows.

    Use it where rules shall tell how long rather than what: of any rule set, also one that was
    extracted from a survival model's risk scores. Its scores are in
    :mod:`skescore.metrics._survival`. Made by :meth:`fit`.

    Parameters
    ----------
    ruleset : RuleSet
        The premises. Outputs, weights and the fallback are not looked at.
    curves : tuple of SurvivalCurve or None
        The curve of each rule; None for a rule without rows.
    fallback : SurvivalCurve
        The curve of all rows, for rows without a rule.

    Raises
    ------
    ValueError
        If there is not one curve per rule.

    Notes
    -----
    In an unordered rule set all rules that hold answer together: the curve of a row is the mean of
    theirs, and each is made from all rows that the rule holds for; so does RuleKit. In an ordered
    one the first rule that holds answers, and its curve is made from the rows that it answers.

    A rule without rows has nothing to say: it does not count in the mean, and rows that it alone
    would answer get the curve of all rows.

    References
    ----------
    Ł. Wróbel, A. Gudyś, M. Sikora: Learning rule sets from survival data. BMC Bioinformatics 18,
    2017.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> ruleset = RuleSet(
    ...     [Rule([Interval(0, lower=60)], 1.0), Rule([Interval(0, upper=60)], 0.0)],
    ...     ["age"], task="regression",
    ... )
    >>> X = [[40.0], [50.0], [70.0], [80.0]]
    >>> rules = SurvivalRules.fit(ruleset, X, ([9.0, 7.0, 2.0, 3.0], [False, True, True, True]))
    >>> print(rules)
    1. IF age > 60 THEN median survival 2   [2 rows, 2 events]
    2. ELSE IF age ≤ 60 THEN median survival 7   [2 rows, 1 event]
    otherwise, where no rule holds: median survival 3   [4 rows, 3 events]
    >>> rules.predict_survival_function([[45.0], [75.0]], times=[1, 2, 8]).tolist()
    [[1.0, 1.0, 0.5], [1.0, 0.5, 0.0]]
    """

    ruleset: RuleSet
    curves: tuple[SurvivalCurve | None, ...]
    fallback: SurvivalCurve

    def __post_init__(self) -> None:
        object.__setattr__(self, "curves", tuple(self.curves))
        if len(self.curves) != len(self.ruleset):
            raise ValueError(
                f"curves must hold one curve per rule, got {len(self.curves)} for "
                f"{len(self.ruleset)} rules."
            )

    @classmethod
    def fit(cls, ruleset: Any, X: Any, y: Any) -> SurvivalRules:
        """Give every rule the survival curve of its rows.

        Parameters
        ----------
        ruleset : RuleSet or what :func:`skescore.as_ruleset` reads
            The premises.
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : structured array, or pair (time, event)
            Their outcomes, see :func:`read_outcomes`.

        Returns
        -------
        SurvivalRules

        Raises
        ------
        TypeError
            If there are no rules to read, or no outcomes.
        ValueError
            If the outcomes do not fit the rows, or no event happened at all: all curves would
            stay at 1.
        """
        rules = as_ruleset(ruleset)
        members = _members(rules, X)
        time, event = read_outcomes(y, len(members))
        if not event.any():
            raise ValueError(
                f"y must hold at least one event, got {len(event)} censored rows: nothing is known "
                "of how long anything lasts."
            )
        curves = [SurvivalCurve.of(time[m], event[m]) if m.any() else None for m in members.T]
        return cls(rules, tuple(curves), SurvivalCurve.of(time, event))

    def __len__(self) -> int:
        return len(self.ruleset)

    def members(self, X: Any) -> Flags:
        """Tell which rules answer which rows: all that hold, or the first in an ordered set.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_rules)
        """
        return _members(self.ruleset, X)

    def predict_survival_function(self, X: Any, times: ArrayLike) -> Floats:
        """The survival curve of every row, at some times.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        times : array-like of float, shape (n_times,)
            When to look. Beyond the last time that a rule has seen, its curve keeps its value.

        Returns
        -------
        ndarray of float, shape (n_rows, n_times)
            Shares to which nothing has happened by then.

        Raises
        ------
        ValueError
            If the times are not a list of numbers, or X does not fit the rules.
        """
        moments = moments_of(times)
        if moments.ndim != 1:
            raise ValueError(f"times must be a list of numbers, got shape {moments.shape}.")
        members = self.members(X) & np.array([c is not None for c in self.curves], dtype=bool)
        steps = np.zeros((len(self), len(moments)))
        for number, curve in enumerate(self.curves):
            if curve is not None:
                steps[number] = curve.at(moments)
        result = np.empty((len(members), len(moments)))
        for start in range(0, len(members), _ROWS_PER_BATCH):
            rows = slice(start, start + _ROWS_PER_BATCH)
            shares = members[rows] / np.maximum(members[rows].sum(axis=1, keepdims=True), 1)
            result[rows] = np.minimum(shares @ steps, 1.0)  # thirds need not add up to 1
        result[~members.any(axis=1)] = self.fallback.at(moments)
        return result

    def to_text(self) -> str:
        """Write the rules with their median survival, one per line, numbered from 1."""
        ruleset = self.ruleset
        lines = []
        for number, (rule, curve) in enumerate(zip(ruleset, self.curves, strict=True), 1):
            premise = rule.premise_text(ruleset.feature_names, ruleset.number)
            start = "ELSE " if ruleset.ordered and number > 1 else ""
            start += f"IF {premise} THEN" if premise else "" if start else "ALWAYS"
            lines.append(f"{number}. {start.strip()} {curve or 'nothing known   [0 rows]'}")
        return "\n".join([*lines, f"otherwise, where no rule holds: {self.fallback}"])

    def __str__(self) -> str:
        return self.to_text()


def _members(ruleset: RuleSet, X: Any) -> Flags:
    """Which rules answer which rows."""
    if not ruleset.ordered:
        return np.asarray(ruleset.match(X), dtype=bool)
    return np.asarray(ruleset.assign(X)[:, None] == np.arange(len(ruleset)))
