"""Scores of survival rules: the integrated Brier score, log-rank tests, and FiRe, Q and ICE.

The rules are :class:`skescore.rules.SurvivalRules`. The estimators come from scikit-survival (extra
``survival``), which has the GNU General Public License.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from skescore._optional import import_optional
from skescore._scores import COMPLETENESSES, SCORE_SPECS, UNCOVERED, all_weights
from skescore._validation import check_choice
from skescore.metrics._completeness import instance_completeness, volume_completeness
from skescore.metrics._significance import adjust_p_values, check_alpha
from skescore.rules import SurvivalCurve, SurvivalRules, read_outcomes

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "LogRank",
    "integrated_brier_score",
    "log_rank",
    "survival_report",
    "survival_rules_log_rank",
    "survival_scores",
]


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CORRECTIONS = ("fdr_bh", "holm")
#: Number of points of the default time grid, and the quantiles at its ends.
_N_TIMES, _SHARES = 100, (0.1, 0.9)


class LogRank(NamedTuple):
    """Result of a log-rank test.

    Attributes
    ----------
    statistic : float
        Chi-squared; NaN if fewer than two groups can be compared.
    p_value : float
        Probability of at least this statistic if all groups have the same survival; or NaN.
    degrees : int
        Degrees of freedom: number of compared groups minus one.
    """

    statistic: float
    p_value: float
    degrees: int


def log_rank(groups: ArrayLike, y: Any) -> LogRank:
    """Test whether groups of rows have the same survival: the log-rank test.

    Use it for any grouping; :func:`survival_report` applies it to every rule.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
        Group of each row: numbers, strings or booleans.
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
    Rows censored before the first event contain no information and are omitted, and so are groups
    of only such rows. If all other rows have their event at the same time, nothing can be compared.
    The test is asymptotic: with few events its p-values are inaccurate.

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
            statistic, p_value = compare.compare_survival(_structured(time, event), codes)
            return LogRank(max(0.0, float(statistic)), float(p_value), n_groups - 1)
    return LogRank(math.nan, math.nan, 0)


def survival_rules_log_rank(rules: SurvivalRules, X: Any, y: Any) -> LogRank:
    """Test whether rules separate rows with different survival.

    Parameters
    ----------
    rules : SurvivalRules
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows; on the rows that the rules were learned from, p-values are too small.
    y : structured array, or pair (time, event)
        Outcomes of the rows.

    Returns
    -------
    LogRank
        Test of groups of rows: the rows assigned to each rule if the rules are ordered, otherwise
        the rows of each combination of matching rules. Uncovered rows are one group.

    Raises
    ------
    ImportError
        If scikit-survival is missing.
    ValueError, TypeError
        If the rows or outcomes do not fit.
    """
    _check_rules(rules)
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
    """Report the rows, the median survival and the log-rank test of every survival rule.

    Parameters
    ----------
    rules : SurvivalRules
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows; on the rows that the rules were learned from, p-values are too small.
    y : structured array, or pair (time, event)
        Outcomes of the rows.
    correction : {"fdr_bh", "holm"} or None, default="fdr_bh"
        Corrected p-value that determines significance; None uses the raw p-value.
    alpha : float, default=0.05
        Significance level, above 0 and below 1.

    Returns
    -------
    pandas.DataFrame
        One row per rule, numbered from 1, with the columns

        ``text``
            Premise of the rule.
        ``rows``, ``events``
            Rows assigned to the rule (if the rules are unordered, all it covers), and their events.
        ``median``, ``other_median``
            Median survival of these rows and of all others; infinite if not reached, NaN without
            rows.
        ``statistic``, ``p_value``
            Log-rank test of these rows against all others; NaN if they cannot be compared.
        ``fdr_p_value``, ``fwer_p_value``
            Corrected for the false discovery rate (Benjamini and Hochberg) and for the family-wise
            error rate (Holm).
        ``significant``
            Whether the selected p-value is at most `alpha`.

    Raises
    ------
    ImportError
        If scikit-survival is missing.
    ValueError, TypeError
        If the rows or outcomes do not fit, or a parameter is out of range.

    Notes
    -----
    Each rule is tested by :func:`log_rank`. RuleKit's p-values are the same if the rows of a rule
    and the others are both under observation until the last event. If one group ends earlier,
    RuleKit still counts its last rows as under observation; skescore does not.
    """
    import pandas as pd

    _check_rules(rules)
    check_alpha(alpha)
    check_choice("correction", correction, (*CORRECTIONS, None))
    members = rules.members(X)
    time, event = read_outcomes(y, len(members))
    tests = [log_rank(rows, (time, event)) for rows in members.T]
    names = rules.ruleset.feature_names
    p_values = np.array([test.p_value for test in tests])
    frame = pd.DataFrame(
        {
            "text": [rule.premise_text(names) or "ALWAYS" for rule in rules.ruleset],
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
    column = {"fdr_bh": "fdr_p_value", "holm": "fwer_p_value"}.get(correction or "", "p_value")
    frame["significant"] = frame[column] <= alpha
    return frame


def _median(time: Floats, event: Flags) -> float:
    return SurvivalCurve.of(time, event).median if len(time) else math.nan


def _structured(time: Floats, event: Flags) -> NDArray[np.void]:
    """Convert outcomes to scikit-survival's structured array."""
    y = np.empty(len(time), dtype=[("event", bool), ("time", np.float64)])
    y["event"], y["time"] = event, time
    return y


def _check_rules(rules: object) -> None:
    """Raise a TypeError unless `rules` are survival rules."""
    if not isinstance(rules, SurvivalRules):
        raise TypeError(
            f"rules must be SurvivalRules, got {type(rules).__name__}. Add survival curves to "
            "rules with SurvivalRules.fit(ruleset, X, y)."
        )


def integrated_brier_score(
    rules: SurvivalRules,
    X: Any,
    y: Any,
    *,
    times: ArrayLike | None = None,
    y_train: Any = None,
    uncovered: str = "penalize",
) -> float:
    r"""Compute the integrated Brier score of survival curves, weighted for censoring; 0 is perfect.

    Use it as the loss of survival rules. A constant prediction of one half scores about 0.25.

    Parameters
    ----------
    rules : SurvivalRules
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows, preferably not those that the curves were estimated from.
    y : structured array, or pair (time, event)
        Outcomes of the rows, at least one event; see :func:`skescore.rules.read_outcomes`.
    times : array-like of float, shape (n_times,), optional
        Time points of the comparison, at least two. They must not precede the first time of the
        scored rows, and must precede the last time of both the scored and the training rows. By
        default, 100 equidistant points between the 10 % and 90 % quantiles of the times of the
        scored rows, clipped to this range. Pass `times` to compare scores of different rows.
    y_train : structured array, or pair (time, event), optional
        Outcomes from which censoring is estimated; by default, the training rows.
    uncovered : {"penalize", "ignore"}, default="penalize"
        Uncovered rows get the curve of all training rows, or are omitted.

    Returns
    -------
    float
        NaN if no row is left.

    Raises
    ------
    ImportError
        If scikit-survival is missing.
    TypeError
        If `rules` are not SurvivalRules, or the outcomes have an unknown format.
    ValueError
        If the outcomes do not fit, there is no observed event, `times` are out of range, or the
        outcomes have fewer than three different times and no `times` are passed.

    Notes
    -----
    The Brier score at a time weights rows by the inverse probability of not being censored by then
    (Graf et al.), estimated by Kaplan and Meier's method from the training rows. It is averaged
    over time by the trapezoidal rule. Rows under observation after the last training time, where
    the estimate ends, count as censored at that time. This does not change the score, since all
    time points are earlier.

    References
    ----------
    E. Graf, C. Schmoor, W. Sauerbrei, M. Schumacher: Assessment and comparison of prognostic
    classification schemes for survival data. Statistics in Medicine 18, 1999.

    Examples
    --------
    ::

        rules = SurvivalRules.fit(ruleset, X_train, y_train)
        integrated_brier_score(rules, X_test, y_test)
    """
    return _brier(rules, X, y, times, y_train, uncovered)[0]


def _brier(
    rules: SurvivalRules, X: Any, y: Any, times: Any, y_train: Any, uncovered: str
) -> tuple[float, float]:
    """Compute the integrated Brier scores of the rules and of the curve of all training rows."""
    _check_rules(rules)
    check_settings(uncovered=uncovered)
    metrics = import_optional("sksurv.metrics", extra="survival", purpose="The Brier score")
    covered = rules.ruleset.covers(X)
    time, event = read_outcomes(y, len(covered))
    scored = covered if uncovered == "ignore" else np.ones(len(covered), dtype=bool)
    if not scored.any():
        return math.nan, math.nan
    time, event = time[scored], event[scored]
    training_outcomes = rules.fallback.outcomes() if y_train is None else read_outcomes(y_train)
    if not training_outcomes[1].any():
        raise ValueError(
            f"y_train must hold at least one event, got {len(training_outcomes[0])} censored."
        )
    last = float(training_outcomes[0].max())
    event = event & (time <= last)
    time = np.minimum(time, last)
    if not event.any():
        raise ValueError(
            f"y must hold at least one event until the last training time {last!r}, got none in "
            f"{len(time)} rows. Score more rows, for instance in fewer folds."
        )
    grid = _grid(times, time)
    train, test = _structured(*training_outcomes), _structured(time, event)
    curves = rules.predict_survival_function(X, grid)[scored]
    overall = np.broadcast_to(rules.fallback.at(grid), curves.shape)

    def integrated(forecast: Floats) -> float:
        # scikit-survival before 0.27 calls a function that NumPy 2.4 removed.
        errors = metrics.brier_score(train, test, forecast, grid)[1]
        return float(np.trapezoid(errors, grid) / (grid[-1] - grid[0]))

    return integrated(curves), integrated(overall)


def _grid(times: ArrayLike | None, time: Floats) -> Floats:
    """Return the time points at which curves are compared with outcomes."""
    observed_times = np.unique(time)
    if times is None:
        if len(observed_times) < 3:
            raise ValueError(
                "y must hold at least three different times for a score, got "
                f"{observed_times.tolist()}."
            )
        low, high = np.quantile(time, _SHARES)
        high = min(high, observed_times[-2])
        low = low if low < high else observed_times[0]
        return np.linspace(low, high, _N_TIMES)
    requested_times = np.asarray(times)
    if (
        requested_times.ndim != 1
        or requested_times.dtype.kind not in "iuf"
        or len(np.unique(requested_times)) < 2
    ):
        raise ValueError(f"times must be a list of two different numbers or more, got {times!r}.")
    wrong = requested_times[
        ~((requested_times >= observed_times[0]) & (requested_times < observed_times[-1]))
    ]
    if len(wrong):
        raise ValueError(
            f"times must lie from {observed_times[0].item()!r}, the first time of the rows, to "
            f"before {observed_times[-1].item()!r}, the last time of the rows or of the training "
            f"rows, got {wrong[0].item()!r}. Pass a shorter range, or None for the default."
        )
    return np.unique(requested_times).astype(np.float64)


def survival_scores(
    rules: SurvivalRules,
    X: Any,
    y: Any,
    *,
    times: ArrayLike | None = None,
    y_train: Any = None,
    uncovered: str = "penalize",
    completeness: str = "volume",
    **weights: float,
) -> dict[str, float]:
    r"""Compute all scores of rule sets, and their parts, for survival rules.

    Parameters
    ----------
    rules : SurvivalRules
        The rules.
    X, y
        See :func:`integrated_brier_score`.
    times, y_train : optional
        See :func:`integrated_brier_score`.
    uncovered : {"penalize", "ignore"}, default="penalize"
        See :func:`integrated_brier_score`.
    completeness : {"volume", "instances"}, default="volume"
        Measure of completeness: share of the domain or share of the rows that rules cover. Rules
        without a domain use the bounding box of the rows.
    **weights : float
        Weights of the scores: ``psi`` of FiRe, ``phi`` and ``rho`` of ICE.

    Returns
    -------
    dict of float
        ``brier`` (the loss of FiRe and Q), ``skill`` (the performance of ICE), ``n_rules``,
        ``completeness``, and the scores of :data:`skescore.scorers.SCORE_SPECS` by name: ``ice``
        (greater is better), ``fire`` and ``q`` (smaller is better).

    Raises
    ------
    ImportError
        If scikit-survival is missing.
    ValueError, TypeError
        If the rows or outcomes do not fit, or a parameter is out of range.

    Warns
    -----
    UndefinedMetricWarning
        If scores are NaN because there are no rules, no rows are left, or the curve of all rows has
        a Brier score of 0.

    Notes
    -----
    The integrated Brier score (IBS) is the loss in FiRe and Q. ICE needs a performance whose best
    value is 1: the skill :math:`1 - \mathrm{IBS} / \mathrm{IBS}_0`, where :math:`\mathrm{IBS}_0` is
    the score of the survival curve of all training rows. Like R², the skill is 0 for rules without
    information and negative for misleading rules (Graf et al.). By default, uncovered rows get the
    curve of all training rows, so the skill on these rows is 0.
    """
    settings = check_settings(uncovered=uncovered, completeness=completeness, **weights)
    brier, reference = _brier(rules, X, y, times, y_train, uncovered)
    skill = 1 - brier / reference if reference > 0 else math.nan
    ruleset, n_rules = rules.ruleset, len(rules)
    if completeness == "instances":
        share = instance_completeness(ruleset, X)
    else:
        if ruleset.domain is None:
            ruleset = ruleset.replace(domain=ruleset.domain_around(X))
        share = float(volume_completeness(ruleset))
    scores = {"brier": brier, "skill": skill, "n_rules": float(n_rules), "completeness": share}
    for name, spec in SCORE_SPECS.items():
        prediction = brier if spec.prediction == "loss" else skill
        is_defined = n_rules > 0 and not math.isnan(prediction)
        scores[name] = spec.value(prediction, n_rules, share, settings) if is_defined else math.nan
    missing = [name for name, value in scores.items() if math.isnan(value)]
    if missing:
        warnings.warn(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} undefined for {n_rules} "
            f"rules with a Brier score of {brier}; the curve of all rows has {reference}.",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return scores


def check_settings(
    *,
    times: Any = None,
    uncovered: str = "penalize",
    completeness: str = "volume",
    **weights: float,
) -> dict[str, float]:
    """Check the settings of :func:`survival_scores` except `times`, and return all weights."""
    check_choice("uncovered", uncovered, UNCOVERED)
    check_choice("completeness", completeness, COMPLETENESSES)
    checked_weights = all_weights(weights)
    for spec in SCORE_SPECS.values():
        spec.check_weights({name: checked_weights[name] for name in spec.weight_names})
    return checked_weights
