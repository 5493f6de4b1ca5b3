"""Log-rank tests of survival rules: do the rows of a rule survive otherwise than the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore._optional import import_optional
from skescore.metrics._rule_rows import check_alpha
from skescore.metrics._significance import adjust_p_values
from skescore.rules._survival import SurvivalCurve, SurvivalRules, read_outcomes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LogRank", "log_rank", "survival_report", "survival_rules_log_rank"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CORRECTIONS = ("fdr_bh", "holm")


class LogRank(NamedTuple):
    """Result of a log-rank test.

    Attributes
    ----------
    statistic : float
        Chi-squared; NaN where there is nothing to compare.
    p_value : float
        How likely groups of one and the same survival would differ so much; NaN likewise.
    degrees : int
        Degrees of freedom: compared groups less one.
    """

    statistic: float
    p_value: float
    degrees: int


def log_rank(groups: ArrayLike, y: Any) -> LogRank:
    """Test whether groups of rows survive alike: the log-rank test.

    Use it for any grouping; :func:`survival_report` tests every rule by it.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
        Which group each row is in: numbers, texts or truth values.
    y : structured array, or pair (time, event)
        Outcomes of the rows.

    Returns
    -------
    LogRank
        NaN with 0 degrees of freedom if fewer than two groups can be compared.

    Raises
    ------
    ImportError
        If scikit-survival is missing.
    ValueError, TypeError
        If the groups or outcomes do not fit.

    Notes
    -----
    Rows censored before the first event tell nothing and are left out; a group of only such rows
    is no group. If all others have their event at once, nothing can be compared. The test is one
    for large groups: with few events its p-values are rough.

    References
    ----------
    N. Mantel: Evaluation of survival data and two new rank order statistics arising in its
    consideration. Cancer Chemotherapy Reports 50, 1966.
    """
    compare = import_optional("sksurv.compare", extra="survival", purpose="The log-rank test")
    labels = np.asarray(groups)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(
            f"groups must hold the group of each row, one row or more, got shape {labels.shape}."
        )
    time, event = read_outcomes(y, len(labels))
    codes = np.unique(labels, return_inverse=True)[1]
    if event.any():
        first = time[event].min()
        in_sight = time >= first
        codes, time, event = codes[in_sight], time[in_sight], event[in_sight]
        n_groups = len(np.unique(codes))
        if n_groups > 1 and not (event & (time == first)).all():
            statistic, p_value = compare.compare_survival(structured(time, event), codes)
            return LogRank(max(0.0, float(statistic)), float(p_value), n_groups - 1)
    return LogRank(math.nan, math.nan, 0)


def survival_rules_log_rank(rules: SurvivalRules, X: Any, y: Any) -> LogRank:
    """Test whether the rules tell rows of different survival apart.

    Parameters
    ----------
    rules : SurvivalRules
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; on those that the rules were found on, p-values are too small.
    y : structured array, or pair (time, event)
        Their outcomes.

    Returns
    -------
    LogRank
        Of the groups of rows that get one and the same curve: those of each rule in an ordered rule
        set, of each combination of rules that hold together in another, and those without a rule.

    Raises
    ------
    ImportError
        If scikit-survival is missing.
    ValueError, TypeError
        If the rows or outcomes do not fit.
    """
    check_survival_rules(rules)
    members = np.packbits(rules.members(X), axis=1)
    groups = (
        np.unique(members, axis=0, return_inverse=True)[1] if members.size else [0] * len(members)
    )
    return log_rank(np.reshape(groups, -1), y)


def survival_report(
    rules: SurvivalRules,
    X: Any,
    y: Any,
    *,
    correction: str | None = "fdr_bh",
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Judge every survival rule by itself: its rows, its median, and whether it differs by luck.

    Parameters
    ----------
    rules : SurvivalRules
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; on those that the rules were found on, p-values are too small.
    y : structured array, or pair (time, event)
        Their outcomes.
    correction : {"fdr_bh", "holm"} or None, default="fdr_bh"
        Which p-value tells what is significant; None takes the raw one.
    alpha : float, default=0.05
        Level of significance, above 0 and below 1.

    Returns
    -------
    pandas.DataFrame
        A row per rule, numbered from 1, with the columns

        ``text``
            The premise.
        ``rows``, ``events``
            Rows that the rule answers (all that it holds for, if the rules are unordered), and
            events among them.
        ``median``, ``other_median``
            Median survival of these rows and of all others: infinite if it is not reached, NaN
            without rows.
        ``statistic``, ``p_value``
            Log-rank test of these rows against all others; NaN where there is nothing to compare.
        ``fdr_p_value``, ``fwer_p_value``
            Corrected for false discoveries (Benjamini and Hochberg) and for any false one (Holm).
        ``significant``
            Whether the p-value chosen is at most `alpha`.

    Raises
    ------
    ImportError
        If scikit-survival is missing.
    ValueError, TypeError
        If the rows or outcomes do not fit, or a parameter is out of range.

    Notes
    -----
    The test of each rule is that of :func:`log_rank`. RuleKit's p-values are the same where both
    groups, the rows of a rule and the others, are in sight until the last event. Where one ends
    before, RuleKit goes on counting its last rows as if they were still in sight; we do not.
    """
    import pandas as pd

    check_survival_rules(rules)
    check_alpha(alpha)
    if correction is not None and correction not in CORRECTIONS:
        raise ValueError(f"correction must be 'fdr_bh', 'holm' or None, got {correction!r}.")
    members = rules.members(X)
    time, event = read_outcomes(y, len(members))
    tests = [log_rank(rows, (time, event)) for rows in members.T]
    names, number = rules.ruleset.feature_names, rules.ruleset.number
    p_values = np.array([test.p_value for test in tests])
    frame = pd.DataFrame(
        {
            "text": [rule.premise_text(names, number) or "ALWAYS" for rule in rules.ruleset],
            "rows": members.sum(axis=0),
            "events": members[event].sum(axis=0),
            "median": [_median(time[rows], event[rows]) for rows in members.T],
            "other_median": [_median(time[~rows], event[~rows]) for rows in members.T],
            "statistic": [test.statistic for test in tests],
            "p_value": p_values,
            "fdr_p_value": adjust_p_values(p_values, "fdr_bh"),
            "fwer_p_value": adjust_p_values(p_values, "holm"),
        },
        index=pd.RangeIndex(1, len(rules) + 1, name="rule"),
    )
    chosen = {"fdr_bh": "fdr_p_value", "holm": "fwer_p_value"}.get(correction or "", "p_value")
    frame["significant"] = frame[chosen] <= alpha
    return frame


def _median(time: Floats, event: Flags) -> float:
    return SurvivalCurve.of(time, event).median if len(time) else math.nan


def structured(time: Floats, event: Flags) -> NDArray[np.void]:
    """Outcomes in scikit-survival's form."""
    y = np.empty(len(time), dtype=[("event", bool), ("time", np.float64)])
    y["event"], y["time"] = event, time
    return y


def check_survival_rules(rules: object) -> None:
    """Raise a TypeError for what are no survival rules."""
    if not isinstance(rules, SurvivalRules):
        raise TypeError(
            f"rules must be SurvivalRules, got {type(rules).__name__}. Give rules the survival "
            "curves of their rows by SurvivalRules.fit(ruleset, X, y)."
        )
