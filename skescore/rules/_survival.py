"""Survival rules, whose outputs are survival curves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore.rules._ruleset import RuleSet
from skescore.rules._text import format_number
from skescore.rules.importers._as_ruleset import as_ruleset

__all__ = [
    "SurvivalCurve",
    "SurvivalRules",
    "as_times",
    "read_outcomes",
]


# For a censored row, it is only known that no event happened until a time. Kaplan-Meier curves make
# no assumption about the distribution of times.

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Tolerance for rounding errors in the comparison of survival probabilities with one half.
_NOISE = 1e-12


def read_outcomes(y: Any, n_rows: int | None = None) -> tuple[Floats, Flags]:
    """Read times and events from the usual formats of survival outcomes.

    Parameters
    ----------
    y : structured array or pair of array-likes
        A structured array with a boolean field (True: the event happened; False: the row was
        censored) and a field of times, like those of ``sksurv.util.Surv``; or the pair ``(time,
        event)``, where events are booleans or 0 and 1.
    n_rows : int, optional
        Required number of outcomes.

    Returns
    -------
    time : ndarray of float, shape (n_rows,)
        Time of the event, or of censoring.
    event : ndarray of bool, shape (n_rows,)
        Whether the event happened (True) or the row was censored.

    Raises
    ------
    TypeError
        If `y` has neither format.
    ValueError
        If a time is missing, negative or infinite, an event is neither true nor false, or the
        numbers of times and events differ.

    Examples
    --------
    >>> time, event = read_outcomes(([5.0, 3.0], [True, False]))
    >>> time.tolist(), event.tolist()
    ([5.0, 3.0], [True, False])
    """
    if isinstance(y, tuple) and len(y) == 2:
        time, event = (np.asarray(part) for part in y)
    else:
        array = np.asarray(y)
        names = array.dtype.names or ()
        flags = [name for name in names if array.dtype[name].kind == "b"]
        if len(names) != 2 or len(flags) != 1:
            raise TypeError(
                "y must be a structured array with a field of truth values (event) and one of "
                f"numbers (time), or the pair (time, event), got {_describe(y, array)}. Make one "
                "by sksurv.util.Surv.from_arrays(event, time)."
            )
        event = array[flags[0]]
        time = array[next(name for name in names if name not in flags)]
    if time.ndim != 1 or time.shape != event.shape:
        raise ValueError(
            "y must hold one time and one event per row, got times of shape "
            f"{time.shape} and events of shape {event.shape}."
        )
    if not len(time):
        raise ValueError("y must hold at least one outcome, got none.")
    if n_rows is not None and len(time) != n_rows:
        raise ValueError(f"y must hold one outcome per row, got {len(time)} for {n_rows} rows.")
    if time.dtype.kind not in "iuf":
        raise ValueError(
            f"y must hold times that are numbers, got {time.tolist()[0]!r}. In a pair the times "
            "come first: (time, event)."
        )
    wrong = ~(np.isfinite(time) & (time >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"y must hold finite times that are 0 or more, got {time[row].item()!r} in row {row}. "
            "Drop such rows."
        )
    if event.dtype.kind != "b":
        # Types are checked first, because pandas' missing value cannot be compared.
        other = [v for v in event.tolist() if not (isinstance(v, Real) and v in (0, 1))]
        if event.dtype.kind not in "iufO" or other:
            raise ValueError(
                "y must hold events that are True or False (1 or 0), got "
                f"{(other or event.tolist())[0]!r}. False represents a censored row."
            )
    return time.astype(np.float64), event.astype(bool)


def _describe(y: Any, array: NDArray[Any]) -> str:
    fields = f" with the fields {array.dtype.names}" if array.dtype.names else ""
    return f"{type(y).__name__} of {array.dtype} and shape {array.shape}{fields}"


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    r"""Kaplan-Meier curve: the probability that no event happens by a given time.

    Use :meth:`of` to estimate a curve.

    Parameters
    ----------
    times : ndarray of float, shape (n_times,)
        Distinct times of the rows, in ascending order.
    events : ndarray of int, shape (n_times,)
        Number of events at each time.
    censored : ndarray of int, shape (n_times,)
        Number of censored rows at each time.

    Notes
    -----
    With :math:`d_i` events among the :math:`n_i` rows at risk at time :math:`t_i`,
    :math:`S(t) = \prod_{t_i \le t} (1 - d_i / n_i)`. A row that is censored at the time of an event
    is still at risk. After the last time, the curve is constant (Gill's convention).

    References
    ----------
    E. L. Kaplan, P. Meier: Nonparametric estimation from incomplete observations. Journal of the
    American Statistical Association 53, 1958.

    R. D. Gill: Censoring and stochastic integrals. Mathematical Centre Tracts 124, 1980.

    Examples
    --------
    >>> curve = SurvivalCurve.of([1.0, 2.0, 3.0, 4.0], [True, False, True, False])
    >>> curve.at([0.5, 1, 3, 9]).tolist()
    [1.0, 0.75, 0.375, 0.375]
    >>> curve.median
    3.0
    """

    times: Floats
    events: NDArray[np.int64]
    censored: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("times", "events", "censored"):
            getattr(self, name).flags.writeable = False

    @classmethod
    def of(cls, time: ArrayLike, event: ArrayLike) -> SurvivalCurve:
        """Estimate a curve from rows.

        Parameters
        ----------
        time : array-like of float, shape (n_rows,)
            Time of the event, or of censoring.
        event : array-like of bool, shape (n_rows,)
            Whether the event happened (True) or the row was censored.
        """
        time_, event_ = read_outcomes((np.asarray(time), np.asarray(event)))
        times, at = np.unique(time_, return_inverse=True)
        n_events = np.bincount(at[event_], minlength=len(times))
        return cls(times, n_events, np.bincount(at, minlength=len(times)) - n_events)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.events.sum() + self.censored.sum())

    @property
    def n_events(self) -> int:
        """Number of events."""
        return int(self.events.sum())

    @property
    def at_risk(self) -> NDArray[np.int64]:
        """Number of rows at risk at each time."""
        leaving = self.events + self.censored
        return np.asarray(leaving[::-1].cumsum()[::-1])

    @property
    def survival(self) -> Floats:
        """Value of the curve at each time."""
        return np.asarray(np.cumprod(1 - self.events / self.at_risk))

    @property
    def median(self) -> float:
        """First time at which the curve is at most one half; infinity if there is none."""
        reached = self.survival <= 0.5 + _NOISE
        return float(self.times[np.argmax(reached)]) if reached.any() else math.inf

    def at(self, times: ArrayLike) -> Floats:
        """Return the values of the curve at the given times.

        Parameters
        ----------
        times : array-like of float
            The times.

        Returns
        -------
        ndarray of float
            Probabilities from 0 to 1; 1 before the first event.

        Raises
        ------
        ValueError
            If a time is not a number.
        """
        steps = np.append(1.0, self.survival)
        return np.asarray(steps[np.searchsorted(self.times, as_times(times), side="right")])

    def outcomes(self) -> tuple[Floats, Flags]:
        """Return the times and events of the rows, sorted by time.

        Returns
        -------
        time : ndarray of float, shape (n_rows,)
        event : ndarray of bool, shape (n_rows,)
        """
        time = np.repeat(np.tile(self.times, 2), np.append(self.events, self.censored))
        event = np.arange(self.n_rows) < self.n_events
        order = np.argsort(time, kind="stable")
        return time[order], event[order]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SurvivalCurve):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[bytes, bytes, bytes]:
        return self.times.tobytes(), self.events.tobytes(), self.censored.tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays would be writable; the constructor locks them.
        return SurvivalCurve, (self.times, self.events, self.censored)

    def __str__(self) -> str:
        median = f"{format_number(self.median)}" if self.median < math.inf else "not reached"
        rows, events = self.n_rows, self.n_events
        return (
            f"median survival {median}   [{rows} row{'' if rows == 1 else 's'}, "
            f"{events} event{'' if events == 1 else 's'}]"
        )

    def __repr__(self) -> str:
        return f"<SurvivalCurve: {self}>"


def as_times(times: ArrayLike) -> Floats:
    """Convert evaluation times of curves to floats."""
    array = np.asarray(times)
    if array.dtype.kind not in "iuf" or np.isnan(array).any():
        raise ValueError(f"times must be numbers, got {times!r}.")
    return array.astype(np.float64)


#: Number of rows whose curves are computed at a time.
_ROWS_PER_BATCH = 8192


@dataclass(frozen=True)
class SurvivalRules:
    """Rule set with the survival curve of each rule.

    Use it to predict survival curves by the rules of any rule set, such as one extracted from the
    risk scores of a survival model. :meth:`fit` estimates the curves,
    :func:`skescore.metrics.survival_scores` scores the result, and
    :class:`skescore.survival.SurvivalRulesEstimator` supports searches and cross-validation.

    Parameters
    ----------
    ruleset : RuleSet
        The premises. Outputs, weights and the fallback are ignored.
    curves : tuple of SurvivalCurve or None
        Curve of each rule; None for a rule without rows.
    fallback : SurvivalCurve
        Curve of all rows, for uncovered rows.

    Raises
    ------
    ValueError
        If the numbers of curves and rules differ.

    Notes
    -----
    In an unordered rule set, the curve of a row is the mean of the curves of all rules that hold,
    each estimated from all rows that the rule covers, as in RuleKit. In an ordered set, the first
    rule that holds predicts, and its curve is estimated from the rows assigned to it.

    Rules without rows do not count. Rows that only such rules cover get the curve of all rows.

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
        """Estimate the survival curve of each rule.

        Parameters
        ----------
        ruleset : RuleSet or object that :func:`skescore.as_ruleset` reads
            The premises.
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : structured array, or pair (time, event)
            Outcomes of the rows, see :func:`read_outcomes`.

        Returns
        -------
        SurvivalRules

        Raises
        ------
        TypeError
            If `ruleset` cannot be converted to rules, or `y` is in another format.
        ValueError
            If the outcomes do not match the rows, or no event happened, so all curves would be 1.
        """
        rules = as_ruleset(ruleset)
        members = _members(rules, X)
        time, event = read_outcomes(y, len(members))
        if not event.any():
            raise ValueError(
                f"y must hold at least one event, got {len(event)} censored rows: all curves would "
                "stay at 1."
            )
        curves = [SurvivalCurve.of(time[m], event[m]) if m.any() else None for m in members.T]
        return cls(rules, tuple(curves), SurvivalCurve.of(time, event))

    def __len__(self) -> int:
        return len(self.ruleset)

    def members(self, X: Any) -> Flags:
        """Return the rules that predict each row: all that hold, or the first in an ordered set.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_rules)
        """
        return _members(self.ruleset, X)

    def predict_survival_function(self, X: Any, times: ArrayLike) -> Floats:
        """Return the survival curve of every row at the given times.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        times : array-like of float, shape (n_times,)
            Times; a curve is constant after the last time of its rows.

        Returns
        -------
        ndarray of float, shape (n_rows, n_times)
            Probabilities that no event happens by each time.

        Raises
        ------
        ValueError
            If the times are not a list of numbers, or X does not match the rules.
        """
        time_points = as_times(times)
        if time_points.ndim != 1:
            raise ValueError(f"times must be a list of numbers, got shape {time_points.shape}.")
        members = self.members(X) & np.array([c is not None for c in self.curves], dtype=bool)
        steps = np.zeros((len(self), len(time_points)))
        for number, curve in enumerate(self.curves):
            if curve is not None:
                steps[number] = curve.at(time_points)
        result = np.empty((len(members), len(time_points)))
        for start in range(0, len(members), _ROWS_PER_BATCH):
            rows = slice(start, start + _ROWS_PER_BATCH)
            shares = members[rows] / np.maximum(members[rows].sum(axis=1, keepdims=True), 1)
            result[rows] = np.minimum(shares @ steps, 1.0)  # rounded shares may sum to more than 1
        result[~members.any(axis=1)] = self.fallback.at(time_points)
        return result

    def to_text(self) -> str:
        """Write the rules with their median survival, one per line, numbered from 1."""
        ruleset = self.ruleset
        lines = []
        for number, (rule, curve) in enumerate(zip(ruleset, self.curves, strict=True), 1):
            premise = rule.premise_text(ruleset.feature_names)
            start = "ELSE " if ruleset.ordered and number > 1 else ""
            start += f"IF {premise} THEN" if premise else "" if start else "ALWAYS"
            lines.append(f"{number}. {start.strip()} {curve or 'nothing known   [0 rows]'}")
        return "\n".join([*lines, f"otherwise, where no rule holds: {self.fallback}"])

    def __str__(self) -> str:
        return self.to_text()


def _members(ruleset: RuleSet, X: Any) -> Flags:
    """Return a mask of the rules that predict each row, shape (n_rows, n_rules)."""
    if not ruleset.ordered:
        return np.asarray(ruleset.match(X), dtype=bool)
    return np.asarray(ruleset.assign(X)[:, None] == np.arange(len(ruleset)))
