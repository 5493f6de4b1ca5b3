"""Reports on labeled rows: one row per rule, and characteristics of the rule set.

RuleKit's models have the same characteristics. Durations of the induction must be passed, since
rules and rows do not determine them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore._text import did_you_mean
from skescore._validation import as_numbers, check_number
from skescore.metrics._confusion import RuleConfusion, Tally, class_codes, confusion
from skescore.metrics._rule_counts import Flags, RuleCounts
from skescore.metrics._rule_quality import RULE_MEASURES, RuleMeasure
from skescore.metrics._significance import check_alpha, significant_fraction
from skescore.rules import RuleSet

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["characteristics", "rule_report"]


#: Corrections that control the false discovery rate and the family-wise error rate.
_FDR, _FWER = ("fdr_bh", "rulekit_fdr"), ("holm", "rulekit_fwer")
#: Corrections of p-values by their abbreviation in names of characteristics.
_CORRECTIONS = {
    "": None,
    "fdr_": "fdr_bh",
    "fwer_": "holm",
    "rulekit_fdr_": "rulekit_fdr",
    "rulekit_fwer_": "rulekit_fwer",
}
#: Durations of an induction: total, growing and pruning.
TIMES = ("time_total_s", "time_growing_s", "time_pruning_s")


def rule_report(
    ruleset: RuleSet,
    X: Any,
    y: ArrayLike | None = None,
    *,
    measures: str | Sequence[str | RuleMeasure] = ("precision", "coverage", "c2"),
    correction: str | None = "fdr_bh",
    alpha: float = 0.05,
    sample_weight: ArrayLike | None = None,
    assigned: bool = False,
    untested: float = np.nan,
) -> pd.DataFrame:
    """Report the counts, measures, significance and overlap of every rule.

    Use it to find rules that are weak, due to chance, or covered by other rules. Work with the
    DataFrame as usual: ``report.sort_values("c2")``, ``report[report["significant"]]``.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), or RuleCounts
        Rows, at least one; or counts of rows, which include labels and weights.
    y : array-like of shape (n_rows,), optional
        Labels of the rows: the truth, or the predictions of a black box.
    measures : sequence of str or RuleMeasure, or "all", default=("precision", "coverage", "c2")
        Names in :data:`skescore.metrics.RULE_MEASURES`, or user-defined measures; one column each.
    correction : {"fdr_bh", "holm", "rulekit_fdr", "rulekit_fwer"} or None, default="fdr_bh"
        Correction whose p-value determines significance; None uses the raw p-value. A variant of
        RuleKit also replaces the standard correction in its column.
    alpha : float, default=0.05
        Significance level, between 0 and 1.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; the tests treat weights as numbers of rows.
    assigned : bool, default=False
        Whether to count for each rule only the rows assigned to it, see :func:`confusion`.
    untested : float, default=NaN
        Regression: p-value of a rule that covers too few rows for a test; see
        :meth:`RuleConfusion.p_values`. RuleKit uses 0.0.

    Returns
    -------
    pandas.DataFrame
        One row per rule, numbered from 1, with the columns

        ``text``, ``output``
            Rule as text, and its output.
        ``p``, ``n``, ``P``, ``N``
            Positive and negative rows, covered and in total; see :func:`confusion`.
        ``coverage``, ``precision``
            p / P and p / (p + n).
        one column per further measure
            NaN where it is undefined.
        ``p_value``, ``fdr_p_value``, ``fwer_p_value``
            Raw p-value, and corrected for the false discovery rate (Benjamini and Hochberg, or
            RuleKit's variant) and the family-wise error rate (Holm, or RuleKit's variant).
        ``significant``
            Whether the rule is significant, see :meth:`RuleConfusion.significant`.
        ``overlap``
            Share of the rule's rows that other rules cover too.
        ``unique_rows``
            Rows that no other rule covers.

    Raises
    ------
    ValueError
        If a measure or correction is unknown, or the rows, labels or weights do not fit.

    See Also
    --------
    characteristics : Figures of the rule set as a whole.

    Notes
    -----
    pandas truncates long rules. ``print(report.to_string())`` prints them in full, and in a
    notebook ``pandas.set_option("display.max_colwidth", None)``.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification", ordered=False,
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> report = rule_report(rules, X, y, measures=["rss"])
    >>> print(report[["text", "p", "n", "rss", "overlap"]].round(2))
                             text    p    n   rss  overlap
    rule
    1      IF length ≤ 2 THEN low  2.0  0.0  0.67     0.50
    2     IF length > 1 THEN high  1.0  2.0  0.33     0.33
    """
    counts = confusion(ruleset, X, y, sample_weight, assigned=assigned)
    frame = ruleset.to_frame()[["output"]]
    frame.insert(0, "text", _texts(ruleset))
    for name in ("p", "n", "P", "N"):
        frame[name] = getattr(counts, name)
    for measure in ("coverage", "precision", *_as_tuple(measures)):
        frame[measure.name if isinstance(measure, RuleMeasure) else measure] = counts.quality(
            measure
        )
    frame["p_value"] = counts.p_values(untested=untested)
    frame["fdr_p_value"] = counts.p_values(
        correction if correction in _FDR else _FDR[0], untested=untested
    )
    frame["fwer_p_value"] = counts.p_values(
        correction if correction in _FWER else _FWER[0], untested=untested
    )
    frame["significant"] = counts.significant(alpha, correction, untested=untested)
    frame["overlap"] = counts.overlap
    frame["unique_rows"] = counts.unique
    return frame


def _as_tuple(measures: str | Sequence[str | RuleMeasure]) -> tuple[str | RuleMeasure, ...]:
    if isinstance(measures, str):
        return tuple(RULE_MEASURES) if measures == "all" else (measures,)
    return tuple(measures)


def _texts(ruleset: RuleSet) -> list[str]:
    """Write every rule without its training statistics."""
    names, numeric = ruleset.feature_names, ruleset.task == "regression"
    texts = []
    for rule in ruleset.rules:
        premise = rule.premise_text(names)
        output = rule.output_text(names, numeric=numeric)
        texts.append(f"IF {premise} THEN {output}" if premise else f"ALWAYS {output}")
    return texts


def characteristics(
    ruleset: RuleSet,
    X: Any,
    y: ArrayLike | None = None,
    *,
    measure: str | RuleMeasure = "c2",
    alpha: float = 0.05,
    sample_weight: ArrayLike | None = None,
    untested: float = np.nan,
    times: Mapping[str, float] | None = None,
    induced: RuleSet | float | None = None,
    **parameters: float,
) -> dict[str, float]:
    """Compute averages over the rules of a set, and how rules overlap on rows.

    Use it to compare rule sets with each other or with models of RuleKit.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), or RuleCounts
        Rows, at least one; or counts of rows, which include labels and weights.
    y : array-like of shape (n_rows,), optional
        Labels of the rows: the truth, or the predictions of a black box.
    measure : str or RuleMeasure, default="c2"
        Measure that `avg_rule_quality` averages: a name in
        :data:`skescore.metrics.RULE_MEASURES`, or a user-defined measure.
    alpha : float, default=0.05
        Significance level, between 0 and 1.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; conflicts are then sums of weights, and the tests
        treat weights as numbers of rows.
    untested : float, default=NaN
        Regression: p-value of a rule that covers too few rows for a test; see
        :meth:`RuleConfusion.p_values`. RuleKit uses 0.0.
    times : mapping of str to float, optional
        Seconds of the induction to include in the result: any of ``time_total_s``,
        ``time_growing_s`` and ``time_pruning_s``, which RuleKit has as attributes of
        ``model.model.stats``.
    induced : RuleSet or float, optional
        Rules before pruning, or the mean number of conditions per rule that were added in the
        growing phase; in RuleKit it is ``model.model.stats.induced_conditions_per_rule``.
    **parameters : float
        Parameters of the measure.

    Returns
    -------
    dict of str to float
        ``n_rules``
            Number of rules.
        ``conditions_per_rule``, ``literals_per_rule``
            Mean number of different features in a premise, and of literals, see
            :attr:`skescore.rules.Rule.n_literals`.
        ``avg_rule_coverage``, ``avg_rule_precision``, ``avg_rule_quality``
            Means of (p + n) / (P + N), of p / (p + n) and of the measure.
        ``avg_pvalue``, ``avg_fdr_pvalue``, ``avg_fwer_pvalue``
            Means of raw p-values and of those corrected by Benjamini and Hochberg, and by Holm;
            ``avg_rulekit_fdr_pvalue`` and ``avg_rulekit_fwer_pvalue`` use RuleKit's variants, which
            may exceed 1.
        ``fraction_significant``, ``fraction_fdr_significant``, ``fraction_fwer_significant``
            Shares of tested rules that are significant by each of these p-values, including the
            ``rulekit_`` variants.
        ``rules_per_example``
            Mean number of rules that cover a row.
        ``voting_conflicts``, ``negative_voting_conflicts``
            Classification only: rows that rules of two or more classes cover, and those that the
            rule set also predicts wrongly.
        ``time_total_s``, ``time_growing_s``, ``time_pruning_s``
            Entries of `times`.
        ``induced_conditions_per_rule``
            If `induced` is given: the number itself, or the comparisons of all rules before pruning
            divided by the number of rules.

        Means and shares over rules are NaN without rules, and means also if the value of any rule
        is undefined, such as the precision of a rule that covers no row.

    Raises
    ------
    ValueError
        If the measure or a time is unknown, or level, rows, labels, weights or times are invalid.
    TypeError
        If a time is not a number.

    See Also
    --------
    rule_report : The same figures rule by rule.

    Notes
    -----
    All rows that a rule covers count, even if the rules are ordered. RuleKit counts conflicts
    without weights, and in regression gives rules that cover one row the p-value 0, as
    ``untested=0.0`` does.

    References
    ----------
    A. Gudyś, M. Sikora, Ł. Wróbel: RuleKit: a comprehensive suite for rule-based learning.
    Knowledge-Based Systems 194, 2020, doi:10.1016/j.knosys.2020.105480.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification", ordered=False,
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> figures = characteristics(rules, X, y, measure="precision")
    >>> figures["n_rules"], figures["rules_per_example"], figures["voting_conflicts"]
    (2, 1.25, 1.0)
    """
    check_alpha(alpha)
    seconds = _check_times(times or {})
    counts, weight, conflicts = (
        _of_counts(ruleset, X)
        if isinstance(X, RuleCounts)
        else _of_rows(ruleset, X, y, sample_weight)
    )
    features = [{f for c in rule.conditions for f in c.features} for rule in ruleset.rules]
    total = counts.P + counts.N
    figures: dict[str, float] = {
        "n_rules": len(ruleset),
        "conditions_per_rule": _mean(list(map(len, features))),
        "literals_per_rule": _mean([rule.n_literals for rule in ruleset.rules]),
        "avg_rule_coverage": _mean(counts.covered / total),
        "avg_rule_precision": _mean(counts.quality("precision")),
        "avg_rule_quality": _mean(counts.quality(measure, **parameters)),
    }
    raw = counts.p_values(untested=untested)
    for part, correction in _CORRECTIONS.items():
        figures[f"avg_{part}pvalue"] = _mean(counts.p_values(correction, untested=untested))
    for part, correction in _CORRECTIONS.items():
        figures[f"fraction_{part}significant"] = significant_fraction(raw, alpha, correction)
    figures["rules_per_example"] = float(counts.covered.sum() / weight)
    if induced is not None:
        figures["induced_conditions_per_rule"] = _induced_per_rule(induced, len(ruleset))
    return figures | conflicts | seconds


def _induced_per_rule(induced: RuleSet | float, n_rules: int) -> float:
    if isinstance(induced, RuleSet):
        return induced.n_literals / n_rules if n_rules else np.nan
    check_number("induced", induced, 0.0)
    return float(induced)


#: Counts of single rules, total weight, and weight of rows that rules of several classes cover.
_Counted = tuple[RuleConfusion, float, dict[str, float]]


def _of_counts(ruleset: RuleSet, counts: RuleCounts) -> _Counted:
    torn = None if counts.classes is None else counts.classes.torn
    return confusion(ruleset, counts), sum(counts.weights), _conflicts(torn)


def _conflicts(torn: NDArray[np.float64] | None) -> dict[str, float]:
    names = "voting_conflicts", "negative_voting_conflicts"
    return {} if torn is None else dict(zip(names, torn.tolist(), strict=True))


def _of_rows(ruleset: RuleSet, X: Any, y: Any, sample_weight: Any) -> _Counted:
    if y is None:
        raise ValueError("y must hold a label per row, but it is None; pass y.")
    tally = Tally(ruleset, X, sample_weight)
    weights = np.ones(len(tally.table)) if tally.weights is None else tally.weights
    if ruleset.classes is None:
        return tally.regression(y), float(weights.sum()), {}
    codes = class_codes(ruleset, y, len(weights))
    torn = _ConflictCollector(ruleset, len(weights))
    counts = tally.classification(codes, torn.watch)
    wrong = torn.rows & (_predicted(ruleset, tally) != codes) if torn.rows.any() else torn.rows
    pair = np.array([weights[torn.rows].sum(), weights[wrong].sum()])
    return counts, float(weights.sum()), _conflicts(pair)


def _check_times(times: Mapping[str, float]) -> dict[str, float]:
    for name in times:
        if name not in TIMES:
            raise ValueError(f"times has no entry {name!r}. {did_you_mean(name, TIMES)}")
    remedy = "Pass seconds."
    seconds = {
        name: as_numbers(f"times[{name!r}]", times[name], low=0.0, remedy=remedy)
        for name in TIMES
        if name in times
    }
    for name, value in seconds.items():
        if value.ndim:
            raise ValueError(f"times[{name!r}] must be one number, got {times[name]!r}. {remedy}")
    return {name: float(value) for name, value in seconds.items()}


def _mean(values: Sequence[float] | NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else np.nan


class _ConflictCollector:
    """Collector of the rows that rules of different classes cover."""

    def __init__(self, ruleset: RuleSet, n_rows: int) -> None:
        self.rows = np.zeros(n_rows, dtype=bool)
        outputs = ruleset.conclusions.outputs
        self._factors = np.stack([np.ones(len(ruleset)), outputs, outputs**2])

    def watch(self, rows: slice, matches: Flags) -> None:
        numbers = matches.astype(np.float64)
        # One product per sum: products of thin matrices are slow, especially with many threads.
        count, codes, squares = (numbers @ factor for factor in self._factors)
        # By Cauchy-Schwarz, equality holds only for equal classes; exact for integers.
        self.rows[rows] = count * squares != codes**2


def _predicted(ruleset: RuleSet, tally: Tally) -> NDArray[np.intp]:
    """Return the codes of the predicted classes; those of uncovered rows are arbitrary."""
    y_pred = ruleset.with_arbitrary_fallback().predict(tally.table)
    return class_codes(ruleset, y_pred, len(tally.table))
